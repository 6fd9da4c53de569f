"""A strict reader of HLS playlists: what RFC 8216 does not allow fails the test.

Usage: media_playlist.py FILE, which ends with status 1 if the file does not follow the standard.
"""

import datetime
import pathlib
import re
import sys
import urllib.parse

_DECIMAL = re.compile(r"\d{1,20}")
_DURATION = re.compile(r"\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:?\d\d)")
_ATTRIBUTE = re.compile(r'([A-Z0-9-]+)=("[^"\n\r]*"|[^",\s][^,\s]*)(?:,|$)')
_SEQUENCES = ("EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE")
# Tags of the whole playlist, which may stand in it once (RFC 8216, 4.3.3 and 4.3.5).
_ONCE = {"EXT-X-VERSION", "EXT-X-TARGETDURATION", *_SEQUENCES, "EXT-X-ENDLIST",
         "EXT-X-PLAYLIST-TYPE", "EXT-X-INDEPENDENT-SEGMENTS"}


class Segment:
    def __init__(self, number, uri, duration, section, init, time, gap):
        self.number = number  # its media sequence number
        self.uri = uri
        self.duration = duration
        self.section = section  # its discontinuity sequence number
        self.init = init  # the URI of its initialization section, or None
        self.time = time  # its EXT-X-PROGRAM-DATE-TIME, or None
        self.gap = gap  # EXT-X-GAP: it is not there (draft-pantos-hls-rfc8216bis, 4.4.4.7)

    def identity(self):
        return self.uri, self.duration, self.section, self.init, self.time, self.gap


class MediaPlaylist:
    """Raises AssertionError, with the text, for whatever the standard forbids."""

    def __init__(self, text):
        self.text = text
        self.tags = {}
        self.segments = []
        self._read()

    def _require(self, condition, what):
        assert condition, f"RFC 8216: {what}\n{self.text}"

    def _read(self):
        self._require(not self.text.startswith("\ufeff"), "4.1: no byte order mark")
        self._require(self.text.endswith("\n") and "\r" not in self.text, "the last line has an end")
        lines = self.text.split("\n")[:-1]
        self._require(lines and lines[0] == "#EXTM3U", "4.3.1.1: EXTM3U is the first line")
        pending = {}  # tags that belong to the next segment
        self._sections = 0  # discontinuities so far
        self._init = None
        for line in lines[1:]:
            self._require(line == line.strip() and line, f"4.1: whitespace in {line!r}")
            if not line.startswith("#"):
                self._end_segment(line, pending)
                pending = {}
            else:
                self._require(line.startswith("#EXT"), f"framelane writes no comments: {line!r}")
                tag, _, value = line[1:].partition(":")
                self._read_tag(tag, value, pending)
        self._require(not pending, f"tags without a segment: {pending}")
        self._check_whole()

    def _read_tag(self, tag, value, pending):
        if tag in _ONCE:
            self._require(tag not in self.tags, f"{tag} stands twice")
            before_segments = not self.segments and not pending
            self._require(tag not in _SEQUENCES or before_segments, f"4.3.3: {tag} comes first")
            self.tags[tag] = value
        elif tag in ("EXTINF", "EXT-X-PROGRAM-DATE-TIME"):
            self._require(tag not in pending, f"{tag} stands twice before a segment")
            pending[tag] = value
        elif tag == "EXT-X-DISCONTINUITY":
            self._require(tag not in pending, "two discontinuities without a segment between them")
            pending[tag] = value
            self._sections += 1
        elif tag == "EXT-X-GAP":
            self._require(tag not in pending and not value, f"{tag} stands twice, or has a value")
            pending[tag] = True
        elif tag == "EXT-X-MAP":
            attributes = dict(_ATTRIBUTE.findall(value))
            self._require(re.fullmatch(r'"[^"]+"', attributes.get("URI", "")), "4.3.2.5: URI")
            self._init = self._uri(attributes["URI"][1:-1])
            pending[tag] = value
        else:
            self._require(False, f"{tag} is no tag that framelane writes")

    def _end_segment(self, uri, pending):
        self._require("EXTINF" in pending, f"4.3.2.1: {uri} has an EXTINF")
        duration, comma, _ = pending["EXTINF"].partition(",")
        self._require(comma and _DURATION.fullmatch(duration), f"EXTINF of {uri}")
        if "." in duration:
            self._require(int(self.tags.get("EXT-X-VERSION", 1)) >= 3, "7: version of a fraction")
        self._uri(uri)
        time = pending.get("EXT-X-PROGRAM-DATE-TIME")
        if time is not None:
            self._require(_DATE.fullmatch(time), f"4.3.2.6: {time} is a date, with a time zone")
            time = datetime.datetime.fromisoformat(time)
        self.segments.append(Segment(self.first_number + len(self.segments), uri, float(duration),
                                     self.first_section + self._sections, self._init, time,
                                     "EXT-X-GAP" in pending))

    def _uri(self, text):
        """A relative one is a path, to which nothing in it gives another meaning."""
        parts = urllib.parse.urlsplit(text)
        self._require(not re.search(r'["\\\\<>^`{|}]', text), f"4.1: {text!r} is no URI")
        self._require(parts.scheme in ("", "http", "https"), f"4.1: {text!r} has a strange scheme")
        self._require(parts.scheme or not (parts.query or parts.fragment or "%" in text),
                      f"4.1: {text!r} is no plain path")
        return text

    def _number(self, tag):
        value = self.tags.get(tag, "0")
        self._require(_DECIMAL.fullmatch(value) and int(value) < 2**64, f"4.2: {tag}:{value}")
        return int(value)

    @property
    def first_number(self):
        return self._number("EXT-X-MEDIA-SEQUENCE")

    @property
    def first_section(self):
        return self._number("EXT-X-DISCONTINUITY-SEQUENCE")

    @property
    def target(self):
        return self._number("EXT-X-TARGETDURATION")

    @property
    def ended(self):
        return "EXT-X-ENDLIST" in self.tags

    def _check_whole(self):
        self._require("EXT-X-TARGETDURATION" in self.tags, "4.3.3.1: TARGETDURATION is required")
        types = ("EVENT", "VOD") if self.ended else ("EVENT",)
        self._require(self.tags.get("EXT-X-PLAYLIST-TYPE", "EVENT") in types, "4.3.3.5")
        self._number("EXT-X-VERSION")
        if any(segment.init for segment in self.segments):
            self._require(int(self.tags.get("EXT-X-VERSION", 1)) >= 6, "7: version of EXT-X-MAP")
        for segment in self.segments:
            # Half is rounded up, as "the nearest integer" is usually understood.
            self._require(int(segment.duration + 0.5) <= self.target,
                          f"4.3.3.1: {segment.uri} is longer than TARGETDURATION")
        names = [segment.uri for segment in self.segments]
        self._require(len(names) == len(set(names)), "a name stands for two segments")
        for one, next_ in zip(self.segments, self.segments[1:]):
            if one.init != next_.init:
                self._require(one.section != next_.section, "a new EXT-X-MAP has a discontinuity")
            if one.time and next_.time and one.section == next_.section:
                gap = (next_.time - one.time).total_seconds() - one.duration
                self._require(abs(gap) < 0.1, f"{next_.uri} begins {gap:.3f} s late by the clock")

    def require_follows(self, older):
        """What a server may change from one version to the next (RFC 8216, 6.2.1 and 6.2.2)."""
        self._require(not older.ended or self.text == older.text, "an ended playlist has changed")
        for tag in ("EXT-X-TARGETDURATION", "EXT-X-PLAYLIST-TYPE", "EXT-X-VERSION",
                    "EXT-X-INDEPENDENT-SEGMENTS"):
            self._require(self.tags.get(tag) == older.tags.get(tag),
                          f"6.2.1: {tag} has changed; before:\n{older.text}")
        for what in ("first_number", "first_section"):
            self._require(getattr(self, what) >= getattr(older, what),
                          f"6.2.2: {what} has gone back; before:\n{older.text}")
        last = older.first_number + len(older.segments) - 1
        self._require(self.first_number + len(self.segments) > last or not older.segments,
                      f"6.2.1: the end has been removed; before:\n{older.text}")
        known = {segment.number: segment for segment in older.segments}
        for segment in self.segments:
            before = known.get(segment.number)
            self._require(before is None or before.identity() == segment.identity(),
                          f"6.2.1: segment {segment.number} has changed; before:\n{older.text}")


class Variant:
    def __init__(self, uri, attributes):
        self.uri = uri
        self.bandwidth = int(attributes["BANDWIDTH"])
        self.average = int(attributes["AVERAGE-BANDWIDTH"])
        self.codecs = attributes["CODECS"].strip('"').split(",")
        self.size = tuple(map(int, attributes["RESOLUTION"].split("x")))
        self.rate = float(attributes["FRAME-RATE"])


class MasterPlaylist:
    """Variants, each with all attributes that framelane writes (RFC 8216, 4.3.4.2), and their sound,
    `sound`, if it has a playlist of its own."""

    def __init__(self, text):
        self.text = text
        lines = text.splitlines()
        assert text.endswith("\n") and lines[:3] == [
            "#EXTM3U", "#EXT-X-VERSION:6", "#EXT-X-INDEPENDENT-SEGMENTS"], text
        self.variants = []
        self.sound = None
        lines = lines[3:]
        if lines[0].startswith("#EXT-X-MEDIA:"):
            attributes = dict(_ATTRIBUTE.findall(lines.pop(0).partition(":")[2]))
            assert attributes["TYPE"] == "AUDIO" and attributes["DEFAULT"] == "YES", text
            self.sound = attributes["URI"].strip('"')
        for tag, uri in zip(lines[0::2], lines[1::2], strict=True):
            name, _, attributes = tag.partition(":")
            assert name == "#EXT-X-STREAM-INF" and not uri.startswith("#"), text
            assert re.fullmatch(f"({_ATTRIBUTE.pattern})+", attributes), text
            self.variants.append(Variant(uri, dict(_ATTRIBUTE.findall(attributes))))
            assert ('AUDIO="sound"' in attributes) == (self.sound is not None), text
            assert 0 < self.variants[-1].average <= self.variants[-1].bandwidth, text
        assert self.variants and len({v.uri for v in self.variants}) == len(self.variants), text


def is_master(path):
    return "#EXT-X-STREAM-INF" in path.read_text(encoding="utf-8")


def read_master(path):
    return MasterPlaylist(path.read_text(encoding="utf-8"))


def read(path):
    return MediaPlaylist(path.read_text(encoding="utf-8"))


def output_playlists(config):
    """The playlists that a daemon with this configuration writes."""
    for feed_name, feed in config.get("feeds", {}).items():
        for name, output in feed.get("outputs", {}).items():
            url = str(output.get("url", "")).replace("${feed}", feed_name).replace("${output}", name)
            if not url.endswith(".m3u8"):
                continue
            encodes = output.get("from")
            if isinstance(encodes, list):
                for encode in encodes:
                    yield str(pathlib.Path(url).parent / encode / "index.m3u8")
            else:
                yield url


class PlaylistWatch:
    """Reads playlists again and again while they are written, and compares each version with the one
    before."""

    def __init__(self):
        self._last = {}

    def look(self, path):
        if not path.is_file():
            return
        text = path.read_text(encoding="utf-8")
        last = self._last.get(path)
        if last is not None and last.text == text:
            return
        now = MediaPlaylist(text)
        if last is not None:
            now.require_follows(last)
        self._last[path] = now


if __name__ == "__main__":
    read(pathlib.Path(sys.argv[1]))
