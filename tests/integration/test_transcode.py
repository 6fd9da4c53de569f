"""`framelane transcode` as an engineer uses it in a shell."""

import errno
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from harness import media
from harness.camera import Camera
from harness.complaints import complaints
from harness.configs import encoder
from harness.daemon import BINARY
from harness.waiting import TIME_FACTOR, wait_until


@pytest.mark.sanitizers
def test_bypassed_frames_are_identical_to_ffmpegs(cli, clip, tmp_path):
    out = tmp_path / "out.yuv"
    done = cli("transcode", clip, out, "--codec", "rawvideo", "--format", "rawvideo")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == media.decoded(clip)


@pytest.mark.parametrize("codec", ["hevc", "mjpeg", "mpeg4", "vp9", "av1"])
def test_bypassed_frames_of_other_codecs_are_identical_too(cli, made, clip, tmp_path, codec):
    encoders = {"hevc": ["libx265", "-x265-params", "log-level=error", "-preset", "ultrafast"],
                "mjpeg": ["mjpeg", "-pix_fmt", "yuvj420p"], "mpeg4": ["mpeg4", "-bf", "2"],
                "vp9": ["libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"],
                "av1": ["libaom-av1", "-usage", "realtime", "-cpu-used", "8"]}
    source = made(f"codec-{codec}.mkv", "-i", clip, "-frames:v", "12", "-vf", "scale=320:240",
                  "-c:v", *encoders[codec])
    out = tmp_path / "out.yuv"
    done = cli("transcode", source, out, "--codec", "rawvideo", "--format", "rawvideo",
               *(["--range", "full"] if codec == "mjpeg" else []))
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == media.decoded(source)


def test_a_file_becomes_a_playable_file_with_every_frame(cli, clip, tmp_path):
    out = tmp_path / "out.mp4"
    done = cli("transcode", clip, out)
    assert done.returncode == 0, done.stderr
    assert media.video(out)["codec_name"] == "h264"
    assert media.frame_count(out) == 42
    assert media.decodes_cleanly(out)


def test_copy_keeps_every_packet(cli, clip, tmp_path):
    out = tmp_path / "out.mkv"
    assert cli("transcode", clip, out, "--codec", "copy").returncode == 0
    assert media.decoded(out) == media.decoded(clip)


def test_a_copy_without_a_keyframe_is_an_error(cli, made, tmp_path):
    """As of a recording whose beginning is lost: the bitstream filter takes the keyframes away."""
    source = made("no_keyframe.mkv", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=1",
                  "-c:v", "libx264", "-bsf:v", "noise=drop=key")
    done = cli("transcode", source, tmp_path / "out.mkv", "--codec", "copy")
    assert done.returncode == 1, done.stderr
    assert "nothing was written: the video has no keyframe" in done.stderr
    assert not list(tmp_path.glob("out*"))


def test_options_reach_the_encoder(cli, clip, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", clip, out, "--codec", "libx264", "--option", "preset=ultrafast",
               "--option", "bf=0", "--bitrate", "300k", "--gop", "1s")
    assert done.returncode == 0, done.stderr
    packets = media.probe(out, "-show_packets")["packets"]
    keys = [number for number, packet in enumerate(packets) if "K" in packet["flags"]]
    assert keys[:4] == [0, 10, 20, 30]


@pytest.mark.parametrize("pixel_format", ["nv12", "gray"])
def test_the_pixel_format_is_what_was_asked_for(cli, bgra, tmp_path, pixel_format):
    out = tmp_path / "out.nut"
    done = cli("transcode", bgra, out, "--input-format", "rawvideo", "--input-pixel-format", "bgra",
               "--input-size", "64x48", "--codec", "rawvideo", "--pixel-format", pixel_format)
    assert done.returncode == 0, done.stderr
    assert media.probe(out, "-show_streams")["streams"][0]["pix_fmt"] == pixel_format


def test_an_option_for_one_of_several_encoders_is_no_mistake(cli, clip, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", clip, out, "--codec", "h264_mf,libx264", "--option", "preset=ultrafast",
               "--slices", "4")
    assert done.returncode == 0, done.stderr
    assert media.video(out)["codec_name"] == "h264"


def test_the_input_is_not_overwritten_by_itself(cli, clip, tmp_path):
    own = tmp_path / "own.mp4"
    own.write_bytes(clip.read_bytes())
    (tmp_path / "link.mp4").symlink_to(own)
    for name in ("own.mp4", "link.mp4"):
        done = cli("transcode", "-y", own, tmp_path / name)
        assert done.returncode == 2 and "same file" in done.stderr, done.stderr
    assert own.read_bytes() == clip.read_bytes()


def test_a_gpu_that_is_not_there_is_one_line_and_exit_1(cli, clip, tmp_path):
    done = cli("transcode", clip, tmp_path / "out.mkv", "--device", "cuda:97",
               env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "cuda" in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_the_first_available_codec_is_taken_and_none_is_an_error(cli, clip, tmp_path):
    out = tmp_path / "out.mkv"
    assert cli("transcode", clip, out, "--codec", "h264_nvenc,ffv1").returncode == 0
    assert media.video(out)["codec_name"] == "ffv1"
    done = cli("transcode", clip, tmp_path / "other.mkv", "--codec", "no_such_codec")
    assert done.returncode == 2 and "no_such_codec" in done.stderr


def test_an_existing_file_is_overwritten_only_when_told_so(cli, clip, tmp_path):
    out = tmp_path / "out.mkv"
    out.write_text("precious")
    done = cli("transcode", clip, out, "--codec", "copy")
    assert done.returncode == 1 and "-y" in done.stderr
    assert out.read_text() == "precious"
    assert cli("transcode", "-y", clip, out, "--codec", "copy").returncode == 0
    assert media.frame_count(out) == 42


def test_two_at_once_do_not_write_one_file(cli, clip, tmp_path):
    out = tmp_path / "out.mkv"
    with subprocess.Popen(
        [str(BINARY), "transcode", "-", str(out), "--input-format", "rawvideo",
         "--input-pixel-format", "bgra", "--input-size", "64x48", "--input-rate", "25",
         "--codec", "ffv1"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as first:
        try:
            first.stdin.write(bytes(64 * 48 * 4) * 50)
            first.stdin.flush()
            wait_until((tmp_path / "out.mkv.part").exists, "the first to begin")
            for overwrite in ([], ["-y"]):
                done = cli("transcode", *overwrite, clip, out, "--codec", "copy")
                assert done.returncode == 1 and "another process" in done.stderr
            _, errors = first.communicate(timeout=60)
        finally:
            first.kill()
    assert first.returncode == 0, errors
    assert media.frame_count(out) == 50


def test_raw_video_needs_no_header(cli, bgra, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", bgra, out, "--input-format", "rawvideo", "--input-pixel-format", "bgra",
               "--input-size", "64x48", "--input-rate", "25", "--codec", "ffv1")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == 50


def test_raw_video_comes_from_standard_input(cli, bgra, tmp_path):
    out = tmp_path / "out.mkv"
    with open(bgra, "rb") as frames:
        done = cli("transcode", "-", out, "--input-format", "rawvideo", "--input-pixel-format",
                   "bgra", "--input-size", "64x48", "--input-rate", "25", stdin=frames)
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == 50


def test_siting_lanes_and_ring_are_what_was_asked_for(cli, bgra, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", bgra, out, "--input-format", "rawvideo", "--input-pixel-format", "bgra",
               "--input-size", "64x48", "--siting", "topleft", "--ring", "1", "--lanes", "1")
    assert done.returncode == 0, done.stderr
    assert media.video(out)["chroma_location"] == "topleft"
    assert media.frame_count(out) == 50


def test_duration_ends_it(cli, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", "lavfi:testsrc2=size=160x120:rate=20", out, "--duration", "2s")
    assert done.returncode == 0, done.stderr
    assert 39 <= media.frame_count(out) <= 41


def test_the_summary_can_be_read_by_a_program(cli, clip, tmp_path):
    done = cli("transcode", clip, tmp_path / "out.mkv", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary.pop("seconds") > 0
    assert summary == {
        "succeeded": True, "reason": None, "decoder": "h264", "codec": "libx264", "frames_in": 42,
        "frames_out": 42, "frames_dropped": 0, "packets_dropped": 0, "decode_errors": 0,
        "bytes": (tmp_path / "out.mkv").stat().st_size,
    }


def test_a_summary_of_a_failure_says_why(cli, tmp_path):
    done = cli("transcode", tmp_path / "missing.mp4", tmp_path / "out.mkv", "--json")
    assert done.returncode == 1
    summary = json.loads(done.stdout)
    assert not summary["succeeded"] and "missing.mp4" in summary["reason"]


def on_a_terminal(*arguments):
    """(exit status, everything that was written to a terminal as standard error)"""
    ours, terminal = pty.openpty()
    with subprocess.Popen([str(BINARY), "transcode", *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=terminal) as process:
        os.close(terminal)
        said = b""
        try:
            while chunk := os.read(ours, 4096):
                said += chunk
        except OSError as error:  # nobody has the terminal open any more
            assert error.errno == errno.EIO
        finally:
            os.close(ours)
            process.wait(timeout=30 * TIME_FACTOR)
    return process.returncode, complaints(said.decode().replace("\r\n", "\n"))


def test_a_terminal_sees_progress_and_then_the_summary_alone(clip, tmp_path):
    status, said = on_a_terminal(clip, tmp_path / "out.mkv")
    assert status == 0, said
    *progress, summary = said.split("\r")
    assert progress[0] == "" and len(progress) > 1
    for line in progress[1:]:
        assert re.fullmatch(r"\d+ frames, \d+\.\d fps, \d+\.\d MB\x1b\[K", line), line
    assert re.fullmatch(r"\x1b\[K42 frames in, 42 out, 0 dropped, 0 decode errors; .*\n", summary)


def test_a_terminal_sees_the_progress_of_a_copy_in_bytes(clip, tmp_path):
    status, said = on_a_terminal(clip, tmp_path / "out.mkv", "--codec", "copy")
    assert status == 0 and re.match(r"\r\d+\.\d MB in \d+\.\d s\x1b\[K\r", said), said


def test_quiet_is_quiet_on_a_terminal_too(clip, tmp_path):
    assert on_a_terminal(clip, tmp_path / "out.mkv", "--quiet") == (0, "")


@pytest.mark.parametrize("arguments, streams", [
    ([], ["audio", "video"]), (["--audio", "copy"], ["audio", "video"]), (["--audio", "none"], ["video"]),
], ids=["default", "copy", "none"])
def test_sound_is_copied_unless_told_otherwise(cli, made, clip, tmp_path, arguments, streams):
    source = made("with-sound.mkv", "-i", clip, "-f", "lavfi", "-i", "sine=duration=4.2", "-c:v",
                  "copy", "-c:a", "aac")
    out = tmp_path / "out.mkv"
    done = cli("transcode", source, out, "--option", "preset=ultrafast", *arguments)
    assert done.returncode == 0, done.stderr
    assert sorted(s["codec_type"] for s in media.probe(out)["streams"]) == streams
    if "audio" in streams:
        def sound(path):
            packets = media.probe(path, "-select_streams", "a", "-show_packets",
                                  "-show_data_hash", "md5")["packets"]
            return [packet["data_hash"] for packet in packets]
        # A file begins with its first picture. One packet of AAC is earlier and is left out.
        assert sound(out) in (sound(source), sound(source)[1:])


def test_the_output_may_be_standard_output(clip):
    done = subprocess.run(
        [str(BINARY), "transcode", str(clip), "-", "--codec", "rawvideo", "--format", "rawvideo"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * TIME_FACTOR, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == media.decoded(clip)


def test_a_summary_and_the_output_cannot_share_standard_output(cli, clip):
    done = cli("transcode", clip, "-", "--format", "matroska", "--json")
    assert (done.returncode, done.stdout) == (2, "") and "--json" in done.stderr


def test_quiet_says_nothing_when_all_is_well(cli, clip, tmp_path):
    done = cli("transcode", clip, tmp_path / "out.mkv", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.sanitizers
@pytest.mark.parametrize("sign, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
                         ids=["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupt_leaves_a_playable_file_and_128_plus_signal(tmp_path, sign, status):
    out = tmp_path / "out.mkv"
    with subprocess.Popen(
        [str(BINARY), "transcode", "--option", "preset=ultrafast",
         "lavfi:testsrc2=size=320x240:rate=30", str(out)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup would ignore it
    ) as process:
        try:
            wait_until(lambda: any(p.stat().st_size > 50_000 for p in tmp_path.glob("out.mkv*")),
                       "50 kB to be written")
            process.send_signal(sign)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == status, errors
    written = list(tmp_path.glob("out*"))
    assert len(written) == 1 and media.decodes_cleanly(written[0])


def test_secrets_of_the_command_line_are_blanked(camera, camera_clip, tmp_path):
    source = camera(camera_clip, auth="basic")
    secret = tmp_path / "password"
    secret.write_text("s3cr3t-pa$s\n")
    url = f"rtsp://{Camera.USER}:${{file:{secret}}}@127.0.0.1:{source.port}/stream"
    outs = [tmp_path / "file.mkv", tmp_path / "url.mkv"]
    processes = [subprocess.Popen([str(BINARY), "transcode", address, str(out)], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
                 for address, out in zip((url, source.url_with_login), outs)]
    try:
        for process, out in zip(processes, outs):
            wait_until(lambda: any(p.stat().st_size for p in tmp_path.glob(f"{out.name}.part")),
                       "something to be written")
            with open(f"/proc/{process.pid}/cmdline", encoding="utf-8") as command_line:
                argv = command_line.read()
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=30)
            assert "s3cr3t" not in argv and "s3cr3t" not in said
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_the_environment_does_not_change_the_result(cli, clip, tmp_path):
    """A locale with decimal commas and another time zone."""
    out = tmp_path / "out.yuv"
    done = cli("transcode", clip, out, "--codec", "rawvideo", "--format", "rawvideo",
               env={**os.environ, "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"})
    assert done.returncode == 0, done.stderr
    assert out.stat().st_size == 42 * 768 * 576 * 3 // 2


def test_several_frames_in_flight_change_nothing(framelane, clip, tmp_path):
    """Rings and lanes of any size give the same bytes in the same order."""
    outputs = []
    for number, (ring, lanes) in enumerate([(1, 1), (2, 3), (16, 8)]):
        path = tmp_path / f"{number}.raw"
        encode = encoder("rawvideo", convert={"format": "nv12"})
        daemon = framelane(
            {"feeds": {"cam": {"input": {"url": str(clip)}, "ring": ring, "lanes": lanes,
                               "encodes": {"main": encode},
                               "outputs": {"raw": {"url": str(path), "format": "rawvideo"}}}}},
            folder=tmp_path / str(number),
        ).wait_ready()
        daemon.wait_state("cam", "ended")
        daemon.stop()
        outputs.append(path.read_bytes())
    assert len(outputs[0]) == 42 * 768 * 576 * 3 // 2
    assert outputs[0] == outputs[1] == outputs[2]


def test_encoders_get_the_memory_for_their_longest_packets(cli, clip, tmp_path):
    """FFV1 asks for 148 bytes a pixel in one piece, which is more than a picture of the network may have."""
    output = tmp_path / "out.mkv"
    done = cli("transcode", clip, output, "--codec", "ffv1", "--size", "1920x1440", "--audio", "none", "--duration",
               "300ms")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(output) == 3
