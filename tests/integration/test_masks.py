"""What a mask covers shows in no output. Sources have a pattern in the masked part; outputs are
compared with those of a source that has been covered before, or with FFmpeg's own decoding."""

import json
import random
import shutil
import socket
import threading

import pytest

from harness import media
from harness.configs import (COPY, IMPATIENT, encoder, looped, one_feed, raw_input, with_a_file_each,
                             x264)
from harness.preload import preload
from harness.waiting import wait_until

WIDTH, HEIGHT = 64, 48
LEFT_HALF = {"polygon": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
ENCODES = {
    "same": encoder("rawvideo"),
    "small": encoder("rawvideo", convert={"size": "50%"}),
    "turned": encoder("rawvideo", convert={"rotate": 90, "format": "yuv444p"}),
    "gray": encoder("rawvideo", convert={"format": "gray"}),
}


def run(framelane, folder, input_, **keys):
    """The bytes of each encode's output."""
    folder.mkdir()
    daemon = framelane(
        with_a_file_each(input_, ENCODES, folder, format_="rawvideo", **keys)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    return {name: (folder / name).read_bytes() for name in ENCODES}, metrics


def covered(frames):
    """Frames of BGRA whose left halves are black. Alpha stays."""
    rows = [bytearray(frames[i:i + 4 * WIDTH]) for i in range(0, len(frames), 4 * WIDTH)]
    for row in rows:
        for x in range(0, 4 * WIDTH // 2, 4):
            row[x:x + 3] = bytes(3)
    return b"".join(rows)


@pytest.mark.asan
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_raw_pictures_are_covered_before_all_else(framelane, tmp_path, device):
    frames = random.Random(3).randbytes(4 * WIDTH * HEIGHT * 3)
    plain, done = tmp_path / "plain.bgra", tmp_path / "covered.bgra"
    plain.write_bytes(frames)
    done.write_bytes(covered(frames))
    size = f"{WIDTH}x{HEIGHT}"
    masked, metrics = run(framelane, tmp_path / "a", raw_input(plain, "bgra", size), mask=LEFT_HALF,
                          device=device)
    expected, _ = run(framelane, tmp_path / "b", raw_input(done, "bgra", size), device=device)
    assert masked == expected
    assert metrics.sum("framelane_host_copies_total", feed="cam") == 0


def test_a_decoders_references_stay_as_they_are(framelane, made, tmp_path):
    """Beside the mask the pictures are those that FFmpeg decodes, though later pictures refer to
    earlier ones under the mask as well."""
    clip = made("motion.mkv", "-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25:duration=2", "-c:v",
                "libx264", "-preset", "medium", "-bf", "2")
    masked = tmp_path / "masked.nut"
    config = one_feed({"url": str(clip)}, encoder("rawvideo"), {"raw": {"url": str(masked)}},
                      mask={**LEFT_HALF, "color": "#ffffff"})
    daemon = framelane(config).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    expected = bytearray(media.decoded(clip))
    size = 160 * 96 * 3 // 2
    assert len(expected) == 50 * size
    for frame in range(0, len(expected), size):
        planes = [(frame, 160, 96, 235), (frame + 160 * 96, 80, 48, 128),
                  (frame + 160 * 96 * 5 // 4, 80, 48, 128)]
        for begin, width, height, code in planes:
            for row in range(begin, begin + width * height, width):
                expected[row:row + width // 2] = bytes([code]) * (width // 2)
    assert media.decoded(masked) == bytes(expected)
    assert metrics.one("framelane_host_copies_total", feed="cam", reason="mask") > 0


def test_a_change_of_size_leaves_no_frame_without_its_mask(framelane, made, clip, tmp_path):
    parts = [made(f"mask-{size}.ts", "-i", clip, "-frames:v", "10", "-vf", f"scale={size}", "-c:v",
                  "libx264", "-bf", "0", "-output_ts_offset", offset, "-f", "mpegts")
             for size, offset in (("320x240", "0"), ("160x120", "2"))]
    whole = tmp_path / "whole.ts"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    everything = {"polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "color": "#ffffff"}
    config = one_feed({"url": str(whole)}, encoder("rawvideo"), {"raw": {"url": str(tmp_path / "out.nut")}},
                      mask=[everything])
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    outputs = sorted(tmp_path.glob("out*.nut"))
    assert [media.frame_count(path) for path in outputs] == [10, 10] or \
        sum(media.frame_count(path) for path in outputs) == 20
    for path in outputs:
        assert set(media.decoded(path)) == {235, 128}, path


def lit(made, clip, size):
    """The clip in this size, whose left 40 % flash in white: what nobody is to see."""
    return made(f"lit-{size.replace(':', 'x')}.mp4", "-stream_loop", "-1", "-i", clip, "-t", "6", "-vf",
                f"scale={size},fps=25,drawbox=w=iw*0.4:c=white:t=fill", "-c:v", "libx264", "-preset",
                "ultrafast", "-bf", "0", "-g", "25", "-an")


def brightest(path, turned):
    """Of the luma that the mask has to cover, and a little away from its edge, and of all."""
    stream = media.video(path)
    width, height = stream["width"], stream["height"]
    pixels = media.decoded(path, "gray")
    assert len(pixels) % (width * height) == 0 and pixels, path
    covered = 0
    for begin in range(0, len(pixels), width * height):
        if turned:  # the left side is at the top
            covered = max(covered, *pixels[begin:begin + width * (height * 4 // 10)])
            continue
        for row in range(begin, begin + width * height, width):
            covered = max(covered, *pixels[row:row + width * 4 // 10])
    return covered, max(pixels)


def test_a_camera_that_comes_back_in_another_size_never_shows_what_is_covered(
    framelane, camera, made, clip, tmp_path
):
    encodes = {"full": x264(), "turned": {**x264(), "convert": {"rotate": 90}},
               "half": {**x264(), "convert": {"size": "50%"},
                        "overlay": {"text": "%T", "at": "bottom-right"}}}
    source = camera(lit(made, clip, "320:240"))
    config = with_a_file_each(
        {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}, encodes, tmp_path,
        "-%H%M%S.mkv", mask=LEFT_HALF)
    for output in config["feeds"]["cam"]["outputs"].values():
        output["segment"] = "1s"
    daemon = framelane(config).wait_ready()
    daemon.wait_frames("cam", 30, encode="turned")
    source.kill()
    source.start(lit(made, clip, "480:360"))
    daemon.wait_log("480x360")
    daemon.wait_more_frames("cam", 90)
    daemon.restart_feed("cam")
    daemon.wait_more_frames("cam", 45)
    daemon.stop()
    sizes = set()
    for name in encodes:
        files = sorted(tmp_path.glob(f"{name}-*.mkv"))
        assert len(files) >= 3, name
        for path in files:
            covered, all_of_it = brightest(path, name == "turned")
            assert covered < 60, (path, covered)  # black is 16, and codecs are not exact
            assert all_of_it > 100, path
            sizes.add((name, media.video(path)["width"]))
    assert sizes == {("full", 320), ("full", 480), ("half", 160), ("half", 240), ("turned", 240),
                     ("turned", 360)}


# Everything but the part that the mask covers is gray.
GREEN = "scale=160:120,hue=s=0,drawbox=w=iw*0.4:c=lime:t=fill"


@pytest.fixture(scope="session")
def green(made, clip):
    """25 frames/s, a keyframe every second, B-frames, 2 s."""
    return made("green.mp4", "-i", clip, "-t", "2", "-vf", f"{GREEN},fps=25", "-c:v", "libx264",
                "-preset", "ultrafast", "-bf", "2", "-g", "25", "-an")


def shows_green(path):
    """True if any pixel of any frame does."""
    u = media.ffmpeg("-i", path, "-map", "0:v:0", "-vf", "format=yuv444p,extractplanes=u", "-f",
                     "rawvideo", "-")
    assert u, path
    return min(u) < 100  # gray is 128, the green 54


def check_no_green(folder, names):
    """In no file that any of the encodes has left."""
    for name in names:
        paths = sorted(folder.glob(f"{name}*"))
        assert paths, name
        for path in paths:
            assert not shows_green(path), path


# The decoder's own pictures, smaller ones with something drawn on them, and some that are turned.
SEVERAL = {
    "full": x264(threads=2),
    "half": {**encoder("ffv1", convert={"size": "50%"}, threads=1), "overlay": {"text": "%T"}},
    "turned": encoder("mjpeg", convert={"rotate": 90}, threads=1),
}


def several(input_, folder, **keys):
    """A configuration with a mask and a Matroska file for each encode."""
    return with_a_file_each(input_, SEVERAL, folder, ".mkv", mask=LEFT_HALF, **keys)


def test_what_is_looked_for_shows_without_the_mask(framelane, green, tmp_path):
    config = several({"url": str(green)}, tmp_path)
    del config["feeds"]["cam"]["mask"]
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert all(shows_green(tmp_path / f"{name}.mkv") for name in SEVERAL)


@pytest.mark.parametrize("skip", ["nonref", "nonkey"])
def test_frames_that_are_left_when_others_are_skipped_are_masked(framelane, green, tmp_path, skip):
    daemon = framelane(several({"url": str(green)}, tmp_path, skip=skip)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    assert metrics.one("framelane_decode_skipped_total", feed="cam") > 0
    check_no_green(tmp_path, SEVERAL)


def test_an_encoder_that_comes_back_gets_masked_frames(framelane, green, tmp_path):
    environment, shortage = preload(tmp_path, "shortage")
    source = tmp_path / "later.mp4"
    daemon = framelane(several(looped(source, options={"threads": 1}, **IMPATIENT), tmp_path),
                       env=environment).wait_ready()
    daemon.wait_state("cam", "backoff")
    shortage.write_text("threads")
    shutil.copy(green, tmp_path / "copy.mp4")
    (tmp_path / "copy.mp4").rename(source)
    daemon.wait_metrics(
        lambda m: m.sum("framelane_frames_dropped_total", encode="full", reason="encoder") >= 5,
        "frames to be dropped in full")
    shortage.unlink()
    daemon.wait_frames("cam", 10, encode="full")
    daemon.stop()
    check_no_green(tmp_path, SEVERAL)


def test_packets_that_are_corrupt_show_nothing(framelane, green, tmp_path):
    """What the decoder makes of them may have any colour elsewhere: the masked part is compared."""
    broken = tmp_path / "broken.mp4"
    media.with_noise(green, broken, begin=8_000, every=3000, length=700, seed=7)
    encodes = {"full": encoder("rawvideo"), "half": encoder("rawvideo", convert={"size": "50%"})}
    daemon = framelane(with_a_file_each({"url": str(broken)}, encodes, tmp_path, ".nut",
                                        mask=LEFT_HALF)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    assert metrics.sum("framelane_decode_errors_total", feed="cam") > 0
    for name, width, height in (("full", 160, 120), ("half", 80, 60)):
        pixels = media.decoded(tmp_path / f"{name}.nut", "yuv444p")
        rows = [pixels[at:at + width] for at in range(0, len(pixels), width)]
        assert len(rows) % (3 * height) == 0 and len(rows) > 3 * height
        # The kernel that makes the smaller picture reaches over the edge.
        covered = width // 2 - (0 if name == "full" else 4)
        for at, row in enumerate(rows):
            assert set(row[:covered]) == {16 if at // height % 3 == 0 else 128}, (name, at)


def test_a_peer_that_comes_back_is_sent_masked_frames(framelane, green, tmp_path):
    received = []
    with socket.create_server(("127.0.0.1", 0)) as peer:

        def receive():
            for number in range(2):
                client = peer.accept()[0]
                path = tmp_path / f"peer-{number}.ts"
                with client, open(path, "wb") as file:
                    while file.tell() < 15_000 and (data := client.recv(65536)):
                        file.write(data)
                received.append(path)

        receiver = threading.Thread(target=receive, daemon=True)
        receiver.start()
        config = one_feed(looped(green), x264("400ms", threads=1), mask=LEFT_HALF, outputs={"peer": {
            "url": f"tcp://127.0.0.1:{peer.getsockname()[1]}", "format": "mpegts",
            "reconnect": {"first": "50ms", "max": "50ms"}}})
        daemon = framelane(config).wait_ready()
        receiver.join(20)
    daemon.stop()
    assert len(received) == 2
    check_no_green(tmp_path, ["peer-0", "peer-1"])


def test_a_killed_process_leaves_and_completes_masked_files(framelane, green, tmp_path):
    config = several(looped(green), tmp_path)
    config["feeds"]["cam"]["outputs"]["hls"] = {"from": "full", "url": str(tmp_path / "hls.m3u8"),
                                                "options": {"hls_time": 1}}
    first = framelane(config).wait_ready()
    parts = [tmp_path / f"{name}.mkv.part" for name in SEVERAL]
    # More than a header: only what is on the disk is left.
    wait_until(lambda: all(part.exists() and part.stat().st_size > 4096 for part in parts), "recordings on the disk")
    first.kill()
    again = framelane(config).wait_ready()
    again.wait_frames("cam", 10, encode="full")
    again.stop()
    assert not list(tmp_path.glob("*.part"))
    for name in SEVERAL:
        assert len(list(tmp_path.glob(f"{name}*.mkv"))) == 2, name
    check_no_green(tmp_path, SEVERAL)
    for path in tmp_path.glob("hls*.ts"):
        assert not shows_green(path), path


@pytest.mark.parametrize("of", ["reading", "scaler"])
def test_a_feed_that_was_short_of_memory_goes_on_masked(framelane, made, green, tmp_path, of):
    """While it reads, or when swscale is to make a picture of 10 bits ready for the mask."""
    source = green if of == "reading" else made(
        "green-10-bit.mkv", "-i", green, "-t", "1", "-pix_fmt", "yuv420p10le", "-c:v", "ffv1")
    environment, shortage = preload(tmp_path, "shortage")
    if of == "scaler":
        shortage.write_text(of)
    daemon = framelane(several(looped(source, **IMPATIENT), tmp_path), env=environment).wait_ready()
    if of == "reading":
        daemon.wait_frames("cam", 10, encode="full")
        shortage.write_text(of)
    daemon.wait_log("threads or memory are short")
    shortage.unlink()
    daemon.wait_more_frames("cam", 15)
    daemon.stop()
    check_no_green(tmp_path, SEVERAL)


def test_pixelated_parts_show_means(framelane, tmp_path):
    source = tmp_path / "in.gray"
    source.write_bytes(random.Random(5).randbytes(64 * 64))
    config = one_feed(raw_input(source, "gray", "64x64"), encoder("rawvideo"),
                      {"raw": {"url": str(tmp_path / "out"), "format": "rawvideo"}},
                      mask={"polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "style": "pixelate"})
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    before, after = source.read_bytes(), (tmp_path / "out").read_bytes()
    for y in range(64):
        for x in range(64):
            block = [before[64 * v + u] for v in range(y // 4 * 4, y // 4 * 4 + 4)
                     for u in range(x // 4 * 4, x // 4 * 4 + 4)]
            assert after[64 * y + x] == (2 * sum(block) + 16) // 32


def test_a_camera_whose_mask_covers_nothing_is_not_shown(framelane, clip, tmp_path):
    sliver = {"polygon": [[0.50001, 0], [0.50002, 0], [0.50002, 1]]}
    config = one_feed({"url": str(clip)}, x264(), {"file": {"url": str(tmp_path / "out.mp4")}},
                      mask=sliver)
    daemon = framelane(config).wait_ready()
    metrics = daemon.wait_state("cam", "failed")
    assert "mask[0] lies between the pixels of 768x576" in daemon.feed("cam")["reason"]
    assert metrics.one("framelane_frames_out_total", feed="cam", encode="main") == 0
    daemon.stop()
    assert not (tmp_path / "out.mp4").exists()


def test_a_copied_stream_beside_a_mask_is_refused(cli, tmp_path):
    config = tmp_path / "framelane.yaml"
    config.write_text(json.dumps(one_feed({"url": "rtsp://127.0.0.1/"}, COPY, None, mask=LEFT_HALF)))
    result = cli("check", "-c", config)
    assert result.returncode == 78
    assert "which the camera's own stream would go around" in result.stderr
