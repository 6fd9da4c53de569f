"""FFmpeg's command-line programs as independent writers and readers."""

import json
import random
import subprocess

from harness.complaints import complaints


def _output(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stderr.decode()}"
    return done.stdout


def ffmpeg(*arguments):
    """Runs ffmpeg; returns its standard output (bytes)."""
    return _output("ffmpeg", "-v", "error", "-y", *map(str, arguments))


def probe(path, *arguments):
    return json.loads(_output("ffprobe", "-v", "error", "-of", "json", "-show_streams",
                              "-show_format", *arguments, str(path)))


def video(path, *arguments):
    """What ffprobe says about the only video stream."""
    streams = [s for s in probe(path, *arguments)["streams"] if s["codec_type"] == "video"]
    assert len(streams) == 1, f"{path}: {len(streams)} video streams"
    return streams[0]


def frame_count(path):
    """The number of frames that can be decoded."""
    return int(video(path, "-count_frames")["nb_read_frames"])


def packet_count(path):
    """Of all streams."""
    return sum(int(stream["nb_read_packets"]) for stream in probe(path, "-count_packets")["streams"])


def _format(path):
    """A few packets of MPEG-TS are too short to be recognised as such."""
    return ["-f", "mpegts"] if str(path).endswith(".ts") else []


def timestamps(path, entry="pts_time"):
    """Timestamps of the video packets in the order of the file, in seconds."""
    text = _output("ffprobe", "-v", "error", *_format(path), "-select_streams", "v:0", "-show_entries",
                   f"packet={entry}", "-of", "csv=p=0", str(path)).decode()
    return [float(line.strip(",")) for line in text.split() if line.strip(",") not in ("", "N/A")]


def with_noise(path, to, begin, every, length, seed):
    """Writes a copy of an MP4 file in which `length` bytes are noise from every so many bytes on, `begin` bytes
    behind the start of its media data."""
    data = bytearray(path.read_bytes())
    noise = random.Random(seed)
    for at in range(data.find(b"mdat") + begin, len(data) - 4000, every):
        data[at:at + length] = noise.randbytes(length)
    to.write_bytes(data)


def decoded(path, pixel_format=None):
    """All frames decoded to raw bytes, in presentation order. ffmpeg adds and drops none."""
    convert = ["-pix_fmt", pixel_format] if pixel_format else []
    return ffmpeg(*_format(path), "-i", path, "-map", "0:v:0", "-fps_mode", "passthrough", *convert,
                  "-f", "rawvideo", "-")


def close_playlist(path):
    """Marks a playlist as complete, so that readers do not wait for more. A daemon that is stopped
    does not do this."""
    with open(path, "a", encoding="ascii") as playlist:
        playlist.write("#EXT-X-ENDLIST\n")


def decodes_cleanly(path):
    """True if ffmpeg decodes all of it without a message, in the file's own time base."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-map", "0:v", "-fps_mode",
                           "passthrough", "-enc_time_base", "-1", "-f", "null", "-"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False)
    return done.returncode == 0 and not complaints(done.stdout.decode()).strip()


def darkest(path):
    """The least luma of all pictures."""
    return min(decoded(path, "gray"))
