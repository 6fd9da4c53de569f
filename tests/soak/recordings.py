"""What every complete recording must be. All are deleted afterwards, so that no disk fills."""

import datetime
import itertools
import re
import subprocess

from harness import clock, media, media_playlist
from harness.complaints import complaints
from soak.site import GOP, SEGMENT

_AT_ONCE = 8  # recordings that are read after one round
_LOSSY = {"udp", "rtp", "yard", "relay", "jpeg-copy"}  # of streams that may come incomplete
_ENCODED = {"yard-viewing", "jpeg", "raw", "shm", "udp"}  # their keyframes come by the time
# The last write comes with the next keyframe, or in an outage after split_after and the longest
# pause of late.
_LATE = 16
_EXACT = 0.1  # seconds between when a picture was taken and where it is in the archive
_HEARD = 2  # a recording of so many seconds has sound
_SOUND_APART = 1.5  # seconds from where the picture begins and ends to where its sound does
# A camera that dies in the middle of a picture may have sent its headers alone.
_BROKEN_OFF = re.compile(r"missing picture in access unit with size \d+$")
# Two pictures of a burst may share one of Matroska's milliseconds.
_SAME_TIME = re.compile(r"non monotonically increasing dts to muxer in stream 0: (\d+) >= \1$")


class Recordings:
    def __init__(self, site, report, dice):
        self._site = site
        self._report = report
        self._dice = dice
        self._live_until = 0  # when the last segment that _check_live has read began

    def check(self):
        """Reads some of those that have been completed since the last call."""
        complete = sorted(path for path in self._site.recordings.rglob("*")
                          if path.is_file() and path.suffix != ".part")
        self._dice.shuffle(complete)
        for path in complete[:_AT_ONCE]:
            try:
                self._check(path)
            except AssertionError as error:  # of ffmpeg
                self._wrong(path, str(error))
        self._check_live()
        for path in complete:
            self._site.cut.discard(path)
            self._site.stretched.discard(path)
            path.unlink(missing_ok=True)

    def _check(self, path):
        cut = path in self._site.cut
        done = subprocess.run(
            ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
             "packet=pts_time,dts_time,flags:stream=codec_name,codec_tag_string",
             "-of", "csv=p=0", path], capture_output=True, text=True, timeout=60, check=False)
        said = "\n".join(line for line in complaints(done.stderr).splitlines()
                         if not _BROKEN_OFF.search(line))
        kind = path.parent.name
        if (done.returncode or said) and not cut and kind not in _LOSSY:
            return self._wrong(path, f"ffprobe says: {said}")
        lines = [line.split(",") for line in done.stdout.split()]
        packets = [line for line in lines if len(line) > 2]
        if ["hevc", "hev1"] in lines:
            self._wrong(path, "HEVC as hev1, which many players refuse, and not as hvc1")
        if not packets:
            return None if cut else self._wrong(path, "no packet")
        if not packets[0][2].startswith("K"):
            self._wrong(path, "it does not begin with a keyframe")
        self._check_times(path, packets, kind)
        # A relay gets several seconds at once.
        if not cut and kind != "relay" and path not in self._site.stretched:
            self._check_span(path, packets)
        if not cut and kind not in _LOSSY:
            self._check_pictures(path)
        if not cut and kind == "clock":
            said = media.probe(path)["format"]["tags"].get("creation_time", "1970-01-01T00:00:00Z")
            begin = datetime.datetime.fromisoformat(said).timestamp()
            self._check_clock(path, [begin + stamp for stamp in sorted(media.timestamps(path))])
        if not cut and kind == "yard" and path not in self._site.stretched:
            self._check_sound(path, packets)

    def _check_times(self, path, packets, kind):
        dts = [float(packet[1]) for packet in packets if packet[1] != "N/A"]
        least = 0 if path.suffix == ".mkv" else 1e-6  # two frames may share one of its milliseconds
        back = [(one, two) for one, two in itertools.pairwise(dts) if two - one < least]
        if back:
            self._wrong(path, f"decoding times do not rise: {back[:3]}")
        pts = sorted(float(packet[0]) for packet in packets if packet[0] != "N/A")
        gap = max((two - one for one, two in itertools.pairwise(pts)), default=0)
        if pts[-1] - pts[0] > SEGMENT + 2 * GOP + gap:
            self._wrong(path, f"{pts[-1] - pts[0]:.1f} s long, with segments of {SEGMENT} s")
        keys = [float(packet[0]) for packet in packets if packet[2].startswith("K")]
        apart = max((two - one for one, two in itertools.pairwise(keys)), default=0)
        if kind in _ENCODED and apart > GOP + gap + 0.1:
            self._wrong(path, f"keyframes are {apart:.1f} s apart, and gop is {GOP} s")

    def _check_span(self, path, packets):
        """Its name is the time of its first frame; its last write comes soon after its last."""
        pts = sorted(float(packet[0]) for packet in packets if packet[0] != "N/A")
        span = path.stat().st_mtime - int(path.name.split(".")[0])
        if not -3 <= span - (pts[-1] - pts[0]) <= _LATE:
            length = pts[-1] - pts[0]
            self._wrong(path, f"archive-times: {length:.1f} s of video that took {span:.1f} s")

    def _check_pictures(self, path):
        done = subprocess.run(["ffmpeg", "-v", "repeat+error", "-i", path, "-map", "0", "-fps_mode",
                               "passthrough", "-enc_time_base", "-1", "-f", "null", "-"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                              check=False)
        said = [line for line in complaints(done.stderr).splitlines()
                if not _SAME_TIME.search(line)]
        if done.returncode or said:
            self._wrong(path, f"ffmpeg says: {said}")

    def _check_clock(self, path, times):
        """Its pictures show when they were taken, which is at these times."""
        shown = clock.read(media.decoded(path, "gray"))
        if len(shown) != len(times):
            return self._wrong(path, f"{len(times)} packets, {len(shown)} pictures")
        # A daemon that was frozen while a camera came back has seen its first pictures late.
        late = sum(until - since for since, until in self._site.frozen
                   if since < times[-1] and until > times[0] - _LATE)
        apart = [clock.apart(time, taken) for time, taken in zip(times, shown)]
        if max(apart) > _EXACT + late:
            self._wrong(path, f"archive-times: pictures lie up to {max(apart):.3f} s from when they"
                        f" were taken, the first {apart[0]:.3f} s, the last {apart[-1]:.3f} s; the"
                        f" daemon was frozen for {late:.1f} s")

    def _check_live(self):
        """The newest segments of the playlist that tells the time."""
        playlist = self._site.live / "clock" / "index.m3u8"
        try:
            segments = media_playlist.read(playlist).segments
        except (OSError, AssertionError):  # which Watch reports
            return
        for segment in segments:
            if not segment.time:
                self._wrong(playlist, f"{segment.uri} has no EXT-X-PROGRAM-DATE-TIME")
            elif segment.time.timestamp() > self._live_until:
                self._live_until = segment.time.timestamp()
                copy = self._site.scratch / segment.uri
                try:
                    copy.write_bytes((playlist.parent / segment.uri).read_bytes())
                except FileNotFoundError:  # it has scrolled out
                    continue
                try:
                    self._check_segment(copy, self._live_until)
                except AssertionError as error:  # of ffmpeg
                    self._wrong(copy, str(error))
                copy.unlink()

    def _check_segment(self, path, begin):
        """Where keyframes come too late, a segment begins without one, or has none."""
        done = subprocess.run(["ffprobe", "-v", "quiet", "-select_streams", "v:0", "-show_entries",
                               "packet=pts_time,flags", "-of", "csv=p=0", path],
                              stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        packets = [line.split(",") for line in done.stdout.split()]
        times = [begin + float(packet[0]) - float(packets[0][0]) for packet in packets]
        keyframe = next((i for i, packet in enumerate(packets) if packet[1][0] == "K"), None)
        if keyframe is not None:
            self._check_clock(path, times[keyframe:])

    def _check_sound(self, path, packets):
        """It lasts as long as the picture, and can be decoded."""
        pictures = sorted(float(packet[0]) for packet in packets if packet[0] != "N/A")
        streams = [stream for stream in media.probe(path)["streams"] if stream["codec_type"] == "audio"]
        if pictures[-1] - pictures[0] < _HEARD:
            return
        if [stream["codec_name"] for stream in streams] != ["aac"]:
            return self._wrong(path, "it has no sound of AAC")
        done = subprocess.run(
            ["ffprobe", "-v", "error", "-select_streams", "a:0", "-show_entries", "frame=pts_time",
             "-of", "csv=p=0", path], capture_output=True, text=True, timeout=60, check=False)
        if said := complaints(done.stderr):
            return self._wrong(path, f"ffprobe says of its sound: {said}")
        times = [float(line.strip(",")) for line in done.stdout.split()]
        if any(two <= one for one, two in itertools.pairwise(times)):
            self._wrong(path, "the times of its sound do not rise")
        for which, at in (("begins", 0), ("ends", -1)):
            sound, picture = times[at], pictures[at]
            if abs(sound - picture) > _SOUND_APART:
                self._wrong(path, f"its sound {which} {sound - picture:.1f} s after its picture")

    def _wrong(self, path, what):
        self._report.fault("recording", f"{path.parent.name}/{path.name}: {what}", path)
