"""What goes wrong with one output stays with it: formats it cannot hold, peers, disks."""

import resource
import socket

import pytest

from harness import media
from harness.configs import COPY, IMPATIENT, encoder, looped, one_feed, x264
from harness.waiting import wait_until


def wait_output_down(daemon, output, reason):
    """Waits until this output of feed cam is down, and the feed runs; returns the scrape. `reason` is
    in what it says."""
    metrics = daemon.wait_metrics(
        lambda m: m.one("framelane_output_up", feed="cam", output=output) == 0
        and m.feed_state("cam") == "running"
        and daemon.feed("cam")["outputs"][output]["reason"] is not None, f"{output} to be down")
    assert reason in daemon.feed("cam")["outputs"][output]["reason"]
    return metrics


def wait_output_up(daemon, output):
    daemon.wait_metrics(lambda m: m.one("framelane_output_up", feed="cam", output=output) == 1,
                        f"{output} to be up")


@pytest.mark.parametrize("options, reason", [
    ({}, "mp4 cannot hold cinepak video; use another container or codec"),
    ({"avioflags": "dirrect"}, "Error setting option avioflags to value dirrect")])
def test_an_output_that_cannot_begin_is_down_alone(framelane, made, clip, tmp_path, options,
                                                   reason):
    cinepak = made("cinepak.mov", "-i", clip, "-vf", "scale=160:120", "-t", "1", "-c:v", "cinepak",
                   "-max_strips", "1")
    source, wrong = (looped(clip), "wrong.mov") if options else (looped(cinepak), "wrong.mp4")
    daemon = framelane(
        one_feed(source, COPY, {
            "wrong": {"url": str(tmp_path / wrong), "options": options},
            "fine": {"url": str(tmp_path / "fine.mov")}})
    ).wait_ready()
    metrics = wait_output_down(daemon, "wrong", reason)
    assert metrics.one("framelane_feed_up", feed="cam") == 1
    wait_output_up(daemon, "fine")
    assert not list(tmp_path.glob("wrong*"))
    assert metrics.sum("framelane_feed_restarts_total") == 0
    daemon.stop()
    assert media.decodes_cleanly(tmp_path / "fine.mov")


def test_an_output_that_could_never_begin_says_so_at_the_end(framelane, mjpeg_avi, tmp_path):
    daemon = framelane(
        one_feed({"url": str(mjpeg_avi)}, COPY, {"out": {"url": str(tmp_path / "out.ts")}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    output = daemon.feed("cam")["outputs"]["out"]
    assert output["state"] == "failed"
    assert "mpegts cannot hold mjpeg video; use another container or codec" in output["reason"]
    daemon.stop()


def test_a_copy_that_the_container_cannot_hold_fails_a_run_once(framelane, mjpeg_avi, tmp_path):
    daemon = framelane(
        one_feed({"url": str(mjpeg_avi)}, COPY, {"out": {"url": str(tmp_path / "out.ts")}}),
        arguments=["--once"])
    assert daemon.wait_exit() == 1
    assert "mpegts cannot hold mjpeg video; use another container or codec" in daemon.log()
    assert not list(tmp_path.glob("out*"))


def test_a_codec_that_one_output_cannot_hold_ends_no_other(framelane, camera, camera_clip,
                                                           hevc_clip, tmp_path):
    """The camera sends H.264, then HEVC, which F4V cannot hold, then H.264 again. (FLV can, since FFmpeg 6.1.)"""
    source = camera(camera_clip)
    feed = {
        "input": {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT},
        "encodes": {"main": COPY, "live": x264()},
        "outputs": {
            # Time alone does not bring it back within this test.
            "push": {"from": "main", "url": str(tmp_path / "push.f4v"),
                     "reconnect": {"first": "1h", "max": "1h"}},
            "rec": {"from": "main", "url": str(tmp_path / "rec.mkv")},
            "hls": {"from": "live", "url": str(tmp_path / "hls" / "index.m3u8")},
        },
    }
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    wait_output_up(daemon, "push")
    source.kill()
    source.start(hevc_clip, "h265")
    metrics = wait_output_down(daemon, "push", "f4v cannot hold hevc video")
    daemon.wait_more_frames("cam", 10)
    wait_output_up(daemon, "rec")
    wait_output_up(daemon, "hls")
    source.kill()
    source.start(camera_clip)
    wait_output_up(daemon, "push")
    assert daemon.metrics().sum("framelane_feed_restarts_total") == 0
    assert daemon.metrics().sum("framelane_output_reconnects_total", output="rec") == 0
    assert metrics.sum("framelane_output_packets_dropped_total", output="rec") == 0
    daemon.stop()
    assert media.video(tmp_path / "push.f4v")["codec_name"] == "h264"
    assert media.video(tmp_path / "push.2.f4v")["codec_name"] == "h264"
    codecs = {media.video(path)["codec_name"] for path in tmp_path.glob("rec*.mkv")}
    assert codecs == {"h264", "hevc"}


def test_a_stalled_peer_slows_only_itself(framelane, camera_clip):
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.bind(("127.0.0.1", 0))
        peer.listen()  # the kernel accepts connections, and nobody reads from them
        url = f"tcp://127.0.0.1:{peer.getsockname()[1]}"
        daemon = framelane(
            # 2.9 MB/s, which soon fill what the kernel holds for a connection.
            one_feed(looped(camera_clip), encoder("rawvideo"),
                     {"stuck": {"url": url, "format": "nut", "queue": 10, "timeout": "30s"},
                      "fine": {"url": "null:"}})
        ).wait_ready()
        metrics = daemon.wait_metrics(
            lambda m: m.one("framelane_output_packets_dropped_total", feed="cam", output="stuck",
                            reason="queue_full") > 0,
            "the stalled output to lose packets", deadline=60,
        )
        assert metrics.sum("framelane_output_packets_dropped_total", output="fine") == 0
        assert metrics.sum("framelane_frames_dropped_total") == 0
        count = metrics.sum("framelane_frames_out_total")
        daemon.wait_frames("cam", count + 25)
    # The peer is gone, so that the stop has nothing to wait for.
    daemon.wait_metrics(lambda m: m.sum("framelane_output_reconnects_total", output="stuck") > 0,
                        "the stalled output to lose its peer")
    daemon.stop()


def test_an_output_that_cannot_be_reached_reconnects_alone(framelane, camera_clip, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = tmp_path / "good.mkv"
    daemon = framelane(
        one_feed(looped(camera_clip), x264(),
                 {"gone": {"url": f"tcp://127.0.0.1:{port}", "format": "mpegts",
                           "reconnect": {"first": "50ms", "max": "100ms"}},
                  "good": {"url": str(path)}})
    ).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_output_reconnects_total", output="gone", reason="refused") >= 3,
        "three reconnects of the output",
    )
    assert metrics.one("framelane_output_up", feed="cam", output="gone") == 0
    daemon.wait_frames("cam", 50)
    assert daemon.metrics().one("framelane_output_up", feed="cam", output="good") == 1
    daemon.stop()
    assert media.decodes_cleanly(path)


def test_an_output_that_cannot_be_reached_does_not_hold_up_a_file(framelane, clip, tmp_path):
    """A file is read as fast as its slowest output accepts; a dead output does not slow it down."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # nobody listens
        path = tmp_path / "good.mkv"
        daemon = framelane(
            one_feed({"url": str(clip)}, x264(),
                     {"gone": {"url": f"tcp://127.0.0.1:{probe.getsockname()[1]}",
                               "format": "mpegts", "queue": 4},
                      "good": {"url": str(path)}})
        ).wait_ready()
        metrics = daemon.wait_state("cam", "ended")
    assert media.frame_count(path) == 42
    assert metrics.sum("framelane_output_packets_dropped_total", output="good") == 0
    assert metrics.sum("framelane_output_packets_dropped_total", output="gone") >= 42


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts"])
def test_a_file_size_limit_costs_packets_and_not_the_process(framelane, camera_clip, tmp_path,
                                                             suffix):
    daemon = framelane(
        one_feed({"url": str(camera_clip), "loop": True}, encoder("mpeg2video", gop="1s", b="4M"),
                 {"file": {"url": f"{tmp_path}/out.{suffix}",
                           "reconnect": {"first": "100ms", "max": "100ms"}},
                  "fine": {"url": "null:"}})
    ).wait_ready()
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    daemon.wait_metrics(
        lambda m: m.sum("framelane_output_reconnects_total", output="file") >= 2
        and m.sum("framelane_output_packets_dropped_total", output="file",
                  reason="write_failed") > 0,
        "two files to reach the limit",
    )
    assert daemon.metrics().feed_state("cam") == "running"
    daemon.stop()
    files = list(tmp_path.glob("out*"))
    assert len(files) >= 2 and not [path for path in files if path.suffix == ".part"]
    for path in files:
        assert len(media.timestamps(path)) >= 10, path
        assert media.decodes_cleanly(path), f"{path} ends with half a frame"


def test_a_folder_in_the_playlists_place_takes_the_output_down(framelane, camera_clip, tmp_path):
    playlist = tmp_path / "hls" / "index.m3u8"
    playlist.mkdir(parents=True)
    daemon = framelane(
        one_feed(looped(camera_clip), COPY,
                 {"hls": {"url": str(playlist), "options": {"hls_time": 1},
                          "reconnect": {"first": "100ms", "max": "100ms"}}})).wait_ready()
    wait_output_down(daemon, "hls", "it is a folder")
    playlist.rmdir()
    wait_output_up(daemon, "hls")
    wait_until(playlist.is_file, "the playlist")


@pytest.mark.parametrize("name, options", [
    ("cam.mp4", {}), ("cam.mp4", {"movflags": "frag_every_frame", "min_frag_duration": "0"}),
    ("cam.mkv", {}), ("cam.ts", {}),
], ids=["mp4", "mp4 of a fragment per frame", "mkv", "ts"])
def test_on_a_full_disk_every_packet_is_in_the_file_or_counts_as_lost(framelane, made, small_disk, name, options):
    """Muxers hold packets back, and what is half is cut off the file: sound and pictures of both are lost."""
    source = made("twenty-seconds-with-sound.mkv", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=20",
                  "-f", "lavfi", "-i", "sine=duration=20", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25",
                  "-c:a", "aac", "-b:a", "96k")
    # Once, so that no group of pictures is sent again.
    output = {"url": str(small_disk / name), "options": options, "reconnect": {"first": "1h", "max": "1h"}}
    daemon = framelane(one_feed({"url": str(source)}, {**COPY, "audio": "copy"}, {"full": output})).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    assert metrics.sum("framelane_output_packets_dropped_total", reason="disk_full") > 0
    written = media.packet_count(small_disk / name)
    assert written > 0
    assert written + metrics.sum("framelane_output_packets_dropped_total") == media.packet_count(source)
