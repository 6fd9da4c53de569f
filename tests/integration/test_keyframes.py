"""When keyframes come, if `gop` asks for them."""

import math

from harness import media
from harness.configs import encoder, one_feed, with_a_file_each

GOP = 2.0
FORCE_IDR = 2  # NV_ENC_PIC_FLAG_FORCEIDR; a forced intra picture, at which no decoder may start, is 1


def keyframes(path):
    """The times of all frames and of the keyframes in seconds, from the first frame on."""
    packets = media.probe(path, "-show_packets", "-select_streams", "v:0")["packets"]
    first = min(float(packet["pts_time"]) for packet in packets)  # B-frames delay it
    frames = sorted((round(float(p["pts_time"]) - first, 3), p["flags"]) for p in packets)
    return [time for time, _ in frames], [time for time, flags in frames if flags.startswith("K")]


def expected(times):
    """The first frame at or after each multiple of the gop."""
    due = {}
    for time in times:
        due.setdefault(math.floor(time / GOP), time)
    return sorted(due.values())


def slowing_clip(made):
    """A camera at dusk: 4 s with 25 frames/s, then 12 s with 5 frames/s, cut to another picture in
    between."""
    return made("slowing.mkv", "-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25:duration=16", "-vf",
                "select='lt(t,4)+not(mod(n,5))',hue=h='90*gt(t,7.1)',negate=enable='gt(t,9.3)'",
                "-fps_mode", "vfr", "-c:v", "libx264", "-preset", "ultrafast")


def test_a_gop_is_a_time_whatever_the_frame_rate_and_the_same_in_every_encode(
    framelane, made, tmp_path
):
    encodes = {
        "x264": encoder("libx264", gop="2s", preset="veryfast", bf=2),
        "x265": encoder("libx265", gop="2s", preset="ultrafast"),
        "mpeg2": encoder("mpeg2video", gop="2s"),
        "vp8": encoder("libvpx", gop="2s", deadline="realtime", **{"cpu-used": 8}),
    }
    config = with_a_file_each({"url": str(slowing_clip(made))}, encodes, tmp_path, ".mkv")
    daemon = framelane(config, arguments=["--once"])
    assert daemon.wait_exit() == 0
    for name in encodes:
        times, keys = keyframes(tmp_path / f"{name}.mkv")
        assert keys == expected(times), name
        assert len(keys) == 8, name


def test_transcode_takes_a_gop_as_a_time(cli, made, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", slowing_clip(made), out, "--codec", "libx264", "--gop", "2s", "--quiet")
    assert done.returncode == 0, done.stderr
    times, keys = keyframes(out)
    assert keys == expected(times)


def test_nvenc_is_asked_for_the_same_keyframes_and_makes_idr_frames(
    framelane, made, nvenc, tmp_path
):
    environment, log = nvenc
    feed = one_feed({"url": str(slowing_clip(made))}, encoder("h264_nvenc", gop="2s", bf=0),
                    {"file": {"url": "null:"}})
    daemon = framelane({"device": "cpu", **feed}, arguments=["--once"], env=environment)
    assert daemon.wait_exit() == 0
    frames = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    times = [time / 1000 for time, _ in frames]  # Matroska's clock
    assert [time / 1000 for time, flags in frames if flags] == expected(times)
    assert {flags for _, flags in frames} == {0, FORCE_IDR}
    assert len(frames) == 160
