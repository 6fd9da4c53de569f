"""Tests of the harness itself."""

import pytest

from harness.complaints import complaints
from harness.media_playlist import MediaPlaylist


def test_only_the_one_line_that_is_not_ours_is_left_out():
    others = "framelane: no\nWarning: using insecure memory! Or not.\nwarning: using insecure memory!\n"
    assert complaints("Warning: using insecure memory!\n" + others) == others


# Two stretches of one stream, each with an initialization section of its own.
GOOD = """#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:3
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MAP:URI="init-0.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-23T10:00:00.000+0100
#EXTINF:2.000,
index-7.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-23T10:00:02.000+0100
#EXTINF:2.440,
index-8.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="init-1.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-23T10:00:17.000+0100
#EXTINF:1.960,
index-9.m4s
"""
MAP_0, MAP_1 = '#EXT-X-MAP:URI="init-0.mp4"\n', '#EXT-X-MAP:URI="init-1.mp4"\n'
SEQUENCES = "#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:3\n"
END = "#EXT-X-ENDLIST\n"
LAST = GOOD[GOOD.index("#EXT-X-DISCONTINUITY\n"):]


def changed(text, *changes):
    """`text` with each (old, new) of `changes`."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("text", [
    GOOD, GOOD + END, changed(GOOD, (LAST, "")),
    changed(GOOD, ("#EXT-X-VERSION:7\n", "#EXT-X-VERSION:7\n#EXT-X-PLAYLIST-TYPE:EVENT\n")),
    "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nindex-0.ts\n",
], ids=["two stretches", "ended", "one stretch", "event", "the least"])
def test_a_playlist_as_it_should_be_is_accepted(text):
    MediaPlaylist(text)


@pytest.mark.parametrize("old, new, said", [
    ("#EXTM3U\n", "\ufeff#EXTM3U\n", "byte order mark"),
    ("#EXTM3U\n", "", "EXTM3U is the first line"),
    ("index-9.m4s\n", "index-9.m4s", "the last line has an end"),
    ("index-8.m4s\n", "index-8.m4s\r\n", "the last line has an end"),
    ("index-8.m4s", "index-8.m4s ", "whitespace"),
    ("index-8.m4s\n", "index-8.m4s\n\n", "whitespace"),
    ("#EXT-X-TARGETDURATION:2\n", "", "TARGETDURATION is required"),
    ("TARGETDURATION:2\n", "TARGETDURATION:2.5\n", "TARGETDURATION:2.5"),
    ("2.440", "2.500", "index-8.m4s is longer than TARGETDURATION"),
    ("MEDIA-SEQUENCE:7", "MEDIA-SEQUENCE:-1", "EXT-X-MEDIA-SEQUENCE:-1"),
    ("MEDIA-SEQUENCE:7", f"MEDIA-SEQUENCE:{2**64}", "EXT-X-MEDIA-SEQUENCE:"),
    ("VERSION:7", "VERSION:2", "version of a fraction"),
    ("VERSION:7", "VERSION:5", "version of EXT-X-MAP"),
    ("VERSION:7\n", "VERSION:7\n#EXT-X-VERSION:7\n", "EXT-X-VERSION stands twice"),
    ("VERSION:7\n", "VERSION:7\n#EXT-X-PLAYLIST-TYPE:VOD\n", "4.3.3.5"),
    ("index-9.m4s\n", f"index-9.m4s\n{END}{END}", "EXT-X-ENDLIST stands twice"),
    (SEQUENCES + "#EXT-X-INDEPENDENT-SEGMENTS\n" + MAP_0,
     "#EXT-X-INDEPENDENT-SEGMENTS\n" + MAP_0 + SEQUENCES, "EXT-X-MEDIA-SEQUENCE comes first"),
    ("#EXTINF:2.440,\n", "", "index-8.m4s has an EXTINF"),
    ("#EXTINF:2.440,", "#EXTINF:2.440", "EXTINF of index-8.m4s"),
    ("#EXTINF:2.440,", "#EXTINF:-2.440,", "EXTINF of index-8.m4s"),
    ("#EXTINF:2.440,", "#EXTINF:2.440,\n#EXTINF:2.440,", "EXTINF stands twice"),
    ("index-9.m4s\n", "", "tags without a segment"),
    ("index-8.m4s", "index-7.m4s", "a name stands for two segments"),
    ("#EXT-X-DISCONTINUITY\n", "#EXT-X-DISCONTINUITY\n" * 2, "two discontinuities"),
    ("#EXT-X-DISCONTINUITY\n", "", "a new EXT-X-MAP has a discontinuity"),
    (MAP_1, "#EXT-X-MAP:BYTERANGE=1\n", "4.3.2.5: URI"),
    ("10:00:02.000", "10:00:02.400", "index-8.m4s begins 0.400 s late"),
    ("10:00:02.000", "10:00:01.600", "index-8.m4s begins -0.400 s late"),
    ("10:00:17.000+0100", "10:00:17.000", "is a date, with a time zone"),
    ("10:00:17.000+0100", "10:00:17+0100", "is a date, with a time zone"),
    ("#EXT-X-INDEPENDENT-SEGMENTS", "#EXT-X-ALLOW-CACHE:NO", "no tag that framelane writes"),
])
def test_a_playlist_that_breaks_a_rule_is_refused(old, new, said):
    text = changed(GOOD, (old, new))
    with pytest.raises(AssertionError) as refused:
        MediaPlaylist(text)
    assert said in str(refused.value).removesuffix(text)


NEXT = ("#EXT-X-PROGRAM-DATE-TIME:2026-11-23T10:00:18.960+0100\n#EXTINF:2.000,\n"
        "index-10.m4s\n")
# The first stretch has scrolled out, and its discontinuity with it.
SCROLLED = [("SEQUENCE:7\n", "SEQUENCE:9\n"), ("SEQUENCE:3\n", "SEQUENCE:4\n"),
            (GOOD[GOOD.index(MAP_0):GOOD.index(MAP_1)], "")]


@pytest.mark.parametrize("changes, more", [
    ([], ""), ([], NEXT), ([], END), (SCROLLED, NEXT),
    ([("SEQUENCE:7\n", "SEQUENCE:8\n"),
      (GOOD[GOOD.index(MAP_0) + len(MAP_0):GOOD.index("index-7.m4s\n") + len("index-7.m4s\n")], "")],
     NEXT),
], ids=["the same", "longer", "ended", "a stretch scrolled out", "a segment scrolled out"])
def test_a_playlist_that_goes_on_as_it_should_follows(changes, more):
    MediaPlaylist(changed(GOOD, *changes) + more).require_follows(MediaPlaylist(GOOD))


@pytest.mark.parametrize("changes, more, said", [
    ([("TARGETDURATION:2", "TARGETDURATION:3")], NEXT, "EXT-X-TARGETDURATION has changed"),
    ([("VERSION:7", "VERSION:6")], NEXT, "EXT-X-VERSION has changed"),
    ([("#EXT-X-INDEPENDENT-SEGMENTS\n", "")], NEXT, "EXT-X-INDEPENDENT-SEGMENTS has changed"),
    ([("VERSION:7\n", "VERSION:7\n#EXT-X-PLAYLIST-TYPE:EVENT\n")], NEXT,
     "EXT-X-PLAYLIST-TYPE has changed"),
    ([("SEQUENCE:7\n", "SEQUENCE:6\n")], NEXT, "first_number has gone back"),
    ([("SEQUENCE:3\n", "SEQUENCE:2\n")], NEXT, "first_section has gone back"),
    ([SCROLLED[0], SCROLLED[2]], NEXT, "segment 9 has changed"),  # its discontinuity is not counted
    ([(LAST, "")], "", "the end has been removed"),
    ([("2.440", "2.400")], NEXT, "segment 8 has changed"),
    ([("index-9.m4s", "other-9.m4s")], NEXT, "segment 9 has changed"),
    ([("init-1.mp4", "init-2.mp4")], NEXT, "segment 9 has changed"),
    ([("10:00:17.000", "10:00:16.960")], NEXT, "segment 9 has changed"),
])
def test_a_playlist_that_goes_on_wrongly_does_not_follow(changes, more, said):
    now = MediaPlaylist(changed(GOOD, *changes) + more)
    with pytest.raises(AssertionError) as refused:
        now.require_follows(MediaPlaylist(GOOD))
    assert said in str(refused.value).split("\n")[0]


def test_a_playlist_that_has_ended_does_not_go_on():
    with pytest.raises(AssertionError, match="an ended playlist has changed"):
        MediaPlaylist(GOOD + NEXT + END).require_follows(MediaPlaylist(GOOD + END))
