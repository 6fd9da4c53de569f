"""What the cameras of the bad week show. It is made once for each folder."""

from harness import clock, media
from harness.daemon import ROOT

_STREET = ROOT / "tests" / "data" / "street_h264.mp4"
_H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-sc_threshold", "0"]

RAW_SIZE = "64x48"
_PIXEL = bytes((16, 128, 240, 255))
RAW_FRAME = _PIXEL * (64 * 48)
RAW_LUMA = 138.0  # of that pixel in limited bt709; a frame read at a wrong offset has another


class Clips:
    """Files of half an hour, which an RTSP server plays to each client from the start."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.camera = self._long("camera", "320x240", 12, *_H264, "-g", 12)
        self.night = self._long("night", "320x240", 3, *_H264, "-g", 12)
        self.wide = self._long("wide", "480x272", 12, *_H264, "-g", 12)
        self.hevc = self._long("hevc", "320x240", 12, "-c:v", "libx265", "-preset", "ultrafast",
                               "-x265-params", "log-level=error:keyint=12", "-tag:v", "hvc1")
        self.clock = folder / "clock.h264"
        if not self.clock.exists():
            media.ffmpeg(*clock.ARGUMENTS, self.clock)
        self.street = _STREET
        stream = media.ffmpeg("-i", _STREET, "-vf", "scale=320:240", "-c:v", "mjpeg", "-q:v", 8,
                              "-f", "mjpeg", "-")
        self.pictures = [b"\xff\xd8" + rest for rest in stream.split(b"\xff\xd8")[1:]]

    def _long(self, name, size, rate, *encoder):
        """The street, with the sound of a telephone line as most cameras send it."""
        path = self._folder / f"{name}.mov"
        if not path.exists():
            short = self._folder / f"{name}-20s.mov"
            media.ffmpeg("-stream_loop", -1, "-i", _STREET, "-f", "lavfi", "-i",
                         "sine=sample_rate=8000", "-t", 20, "-vf",
                         f"scale={size.replace('x', ':')},fps={rate}", *encoder,
                         "-c:a", "pcm_alaw", "-ac", 1, short)
            media.ffmpeg("-stream_loop", 89, "-i", short, "-c", "copy", path)
        return path
