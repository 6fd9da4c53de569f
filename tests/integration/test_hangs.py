"""Calls that do not return, or late: their threads are abandoned, and stops stay clean."""

import contextlib
import os
import pathlib
import signal
import socket
import tempfile
import threading

import pytest

from harness import media
from harness.configs import ALL_WHITE, COPY, IMPATIENT, looped, raw_input, x264
from harness.preload import preload
from harness.waiting import wait_until


@pytest.fixture
def hang(tmp_path):
    """(environment that preloads hang.c, the file that makes the calls hang while it exists)"""
    environment, file = preload(tmp_path, "hang")
    yield environment, file
    file.unlink(missing_ok=True)


def read_all(server):
    """Reads what all clients send, until the server is closed."""
    def read(client):
        with client:
            while client.recv(65536):
                pass

    def serve():
        try:
            while True:
                threading.Thread(target=read, args=[server.accept()[0]], daemon=True).start()
        except OSError:
            pass

    threading.Thread(target=serve, daemon=True).start()


def test_an_encoder_and_a_network_output_that_hang_are_noticed_and_start_again(
    framelane, camera_clip, hang, tmp_path
):
    """It takes 16 s, since a call has 10 s, and 5 s more until it counts as hanging. What is masked shows
    in no file."""
    environment, file = hang
    with contextlib.ExitStack() as servers:
        server = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = server.getsockname()
        read_all(server)
        peer = {"url": f"tcp://127.0.0.1:{address[1]}", "format": "mpegts", **IMPATIENT}
        daemon = framelane({"feeds": {
            "cam": {"input": looped(camera_clip), "encodes": {"main": x264()}, "mask": ALL_WHITE,
                    "outputs": {"file": {"url": str(tmp_path / "cam-%s.mkv")}}},
            "push": {"input": looped(camera_clip), "encodes": {"main": COPY},
                     "outputs": {"peer": peer}},
            "other": {"input": looped(camera_clip), "encodes": {"main": COPY},
                      "outputs": {"file": {"url": "null:"}}},
        }}, env=environment).wait_ready()
        daemon.wait_frames("cam", 10)
        daemon.wait_metrics(lambda m: m.sum("framelane_output_bytes_total", feed="push") > 10_000,
                            "bytes sent to the peer")
        file.touch()
        daemon.wait_log("feed push: output peer is stuck in a call on tcp://", deadline=15)
        # The peer is gone, so that the feed, which starts again, does not hang again.
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        daemon.wait_log("feed cam: encode main: a call of libx264 does not come to an end; its thread "
                        "is abandoned: check the load of this machine", deadline=25)
        metrics = daemon.wait_state("cam", "backoff")
        assert metrics.one("framelane_feed_up", feed="cam") == 0
        assert metrics.sum("framelane_ring_jobs", feed="cam") == 0
        assert metrics.sum("framelane_frames_in_flight", feed="cam") == 0
        assert metrics.one("framelane_feed_state", feed="other", state="running") == 1
        # The call has not returned, but nobody waits for it any more.
        daemon.wait_metrics(
            lambda m: m.one("framelane_feed_bottleneck", feed="push", stage="output") == 0
            and m.feed_state("push") == "running", "no output to hold up the feed")
        sent = daemon.metrics().sum("framelane_output_bytes_total", feed="push")
        read_all(servers.enter_context(socket.create_server(address)))
        file.unlink()
        daemon.wait_more_frames("cam", 10)
        daemon.wait_metrics(
            lambda m: m.sum("framelane_output_bytes_total", feed="push") > sent + 10_000,
            "bytes sent to the peer again")
        assert daemon.metrics().one("framelane_threads_abandoned_total") >= 2
        assert "feed other" not in "".join(
            line for line in daemon.log().splitlines() if " error " in line)
        daemon.stop()
    recordings = list(tmp_path.glob("cam-*.mkv"))
    assert len(recordings) >= 2 and min(media.darkest(path) for path in recordings) > 200


def start_with_hanging_encoder(framelane, clip, hang, folder, cam):
    """The feed "cam" hangs in opening an encoder. Another one, "other", writes other.mkv into `folder`."""
    environment, file = hang
    file.touch()
    daemon = framelane({"feeds": {
        "cam": {"input": looped(clip), **cam},
        "other": {"input": looped(clip), "encodes": {"main": COPY},
                  "outputs": {"file": {"url": str(folder / "other.mkv")}}},
    }}, env=environment).wait_ready()
    wait_until(pathlib.Path(f"{file}.reached").exists, "an encoder to be opened")
    daemon.wait_metrics(lambda m: m.sum("framelane_output_bytes_total", feed="other") > 0,
                        "the other feed's file to be written")
    return daemon


def test_a_stop_while_an_encoder_is_opened_opens_no_other(framelane, camera_clip, hang, tmp_path):
    daemon = start_with_hanging_encoder(framelane, camera_clip, hang, tmp_path, {
        "encodes": {"first": x264(), "second": x264()},
        "outputs": {name: {"from": name, "url": str(tmp_path / f"{name}.mkv")} for name in ("first", "second")}})
    daemon.process.send_signal(signal.SIGTERM)
    daemon.wait_log("feed other: output file: completed")  # feeds are stopped in their order
    hang[1].unlink()
    assert daemon.wait_exit() == 0
    assert "encode second" not in daemon.log()
    assert "error" not in daemon.log()
    assert [path.name for path in tmp_path.glob("*.mkv*")] == ["other.mkv"]


def test_a_stop_ends_in_time_though_the_opening_of_an_encoder_never_returns(
    framelane, camera_clip, hang, tmp_path
):
    """It takes 9 s: 7.5 s to complete what is in hand, and 1.5 s after the cancel."""
    daemon = start_with_hanging_encoder(framelane, camera_clip, hang, tmp_path, {
        "encodes": {"main": x264()}, "outputs": {"file": {"url": str(tmp_path / "cam.mkv")}}})
    daemon.stop(deadline=20)  # with status 0, as docs/operations.md says
    assert "feed cam: stopped with 1 frame" in daemon.log()
    assert "feed cam: 1 of its threads did not end when asked to and was abandoned" in daemon.log()
    assert [path.name for path in tmp_path.glob("*.mkv*")] == ["other.mkv"]
    assert media.decodes_cleanly(tmp_path / "other.mkv")


def test_a_stop_while_encoders_are_opened_for_another_format_opens_no_other(
    framelane, camera_clip, cif_clip, hang, tmp_path
):
    environment, file = hang
    parts = [media.ffmpeg("-i", clip, "-t", 2, "-c", "copy", "-output_ts_offset", offset, "-f", "mpegts",
                          "-") for clip, offset in ((camera_clip, 0), (cif_clip, 2))]
    fifo = tmp_path / "camera.fifo"
    os.mkfifo(fifo)
    daemon = framelane({"feeds": {
        # The ring has room for what is left of the format before while its encoders hang.
        "cam": {"input": {"url": str(fifo), "format": "mpegts"}, "ring": 64,
                "encodes": {"first": x264(), "second": x264()},
                "outputs": {name: {"from": name, "url": str(tmp_path / f"{name}.mkv")}
                            for name in ("first", "second")}},
        "other": {"input": looped(camera_clip), "encodes": {"main": COPY},
                  "outputs": {"file": {"url": str(tmp_path / "other.mkv")}}},
    }}, env=environment).wait_ready()
    with open(fifo, "wb", buffering=0) as writer:
        writer.write(parts[0])
        daemon.wait_frames("cam", 30, encode="second")
        file.touch()
        writer.write(parts[1])
        daemon.wait_log("feed cam: video is 352x288")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_log("feed other: output file: completed")  # feeds are stopped in their order
        file.unlink()
        assert daemon.wait_exit() == 0
    assert "encode second: 352x288" not in daemon.log()
    assert " error " not in daemon.log()
    for name in ("first", "second"):  # what they had of the format before is complete
        assert media.decodes_cleanly(tmp_path / f"{name}.mkv")
        assert media.frame_count(tmp_path / f"{name}.mkv") >= 30


def test_a_raw_file_on_a_file_server_that_hangs_is_given_up_and_read_again(framelane, camera_clip, hang,
                                                                          tmp_path):
    """Large enough frames to be read ahead. It takes 6 s, since a call hangs 5 s after its timeout."""
    environment, file = hang
    frames = tmp_path / "frames.raw"
    frames.write_bytes(bytes(640 * 360 * 4 * 8))
    daemon = framelane({"feeds": {
        "raw": {"input": {**raw_input(frames, "bgra", "640x360"), "loop": True, "pace": "realtime",
                          **IMPATIENT},
                "encodes": {"main": x264()}, "outputs": {"file": {"url": "null:"}}},
        "other": {"input": looped(camera_clip), "encodes": {"main": COPY},
                  "outputs": {"file": {"url": "null:"}}},
    }}, env={**environment, "FRAMELANE_TEST_HANG_READING": str(frames)}).wait_ready()
    daemon.wait_frames("raw", 20)
    file.touch()
    daemon.wait_log(f"reading {frames} is stuck in a call that ignores input.timeout", deadline=15)
    metrics = daemon.wait_state("raw", "backoff")
    assert metrics.sum("framelane_frames_in_flight", feed="raw") == 0
    assert metrics.one("framelane_feed_state", feed="other", state="running") == 1
    assert metrics.one("framelane_threads_abandoned_total") == 1
    assert metrics.one("framelane_threads_stuck") == 1
    file.unlink()
    daemon.wait_more_frames("raw", 20)
    daemon.wait_metrics(lambda m: m.one("framelane_threads_stuck") == 0, "the call to have returned")
    daemon.stop()


def test_framelane_ends_itself_when_more_threads_are_stuck_than_it_may_have(framelane, camera_clip, hang,
                                                                             tmp_path):
    """With status 1, so that it is started again, and with complete files. It takes 6 s, as above."""
    environment, file = hang
    frames = tmp_path / "frames.raw"
    frames.write_bytes(bytes(640 * 360 * 4 * 8))
    daemon = framelane({"watchdog": {"max_abandoned": 0}, "feeds": {
        "raw": {"input": {**raw_input(frames, "bgra", "640x360"), "loop": True, "pace": "realtime",
                          **IMPATIENT},
                "encodes": {"main": x264()}, "outputs": {"file": {"url": "null:"}}},
        "other": {"input": looped(camera_clip), "encodes": {"main": COPY},
                  "outputs": {"file": {"url": str(tmp_path / "other.mkv")}}},
    }}, env={**environment, "FRAMELANE_TEST_HANG_READING": str(frames)}).wait_ready()
    daemon.wait_frames("raw", 20)
    assert daemon.metrics().one("framelane_threads_stuck") == 0
    file.touch()
    assert daemon.wait_exit(deadline=25) == 1
    assert "error 1 thread is stuck in a call that does not return, and watchdog.max_abandoned is 0" in daemon.log()
    assert media.decodes_cleanly(tmp_path / "other.mkv")
    assert not list(tmp_path.glob("other*.part"))


def test_a_stop_does_not_wait_for_a_raw_file_on_a_file_server_that_hangs(framelane, hang, tmp_path):
    environment, file = hang
    frames = tmp_path / "frames.raw"
    frames.write_bytes(bytes(640 * 360 * 4 * 8))
    file.touch()
    daemon = framelane({"feeds": {
        "raw": {"input": {**raw_input(frames, "bgra", "640x360"), "timeout": "1h"},
                "encodes": {"main": x264()}, "outputs": {"file": {"url": "null:"}}},
    }}, env={**environment, "FRAMELANE_TEST_HANG_READING": str(frames)}).wait_ready()
    wait_until(pathlib.Path(f"{file}.reached").exists, "the file to be read")
    daemon.process.send_signal(signal.SIGTERM)
    daemon.wait_exit(deadline=10)
    assert "abandoned" in daemon.log()


def test_a_disk_that_hangs_while_files_are_deleted_holds_up_nothing_else(framelane, camera_clip, hang,
                                                                         tmp_path):
    """It takes 8 s, since a call counts as hanging after 5."""
    environment, file = hang
    stuck = tmp_path / "stuck"
    stuck.mkdir()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as fine:
        assert pathlib.Path(fine).stat().st_dev != tmp_path.stat().st_dev
        file.touch()
        daemon = framelane({"feeds": {
            name: {"input": looped(camera_clip), "encodes": {"main": COPY},
                   "outputs": {"rec": {"url": f"{folder}/%s.ts", "segment": "500ms",
                                       "keep": {"size": 1}}}}
            for name, folder in (("stuck", stuck), ("fine", fine))
        }}, env={**environment, "FRAMELANE_TEST_HANG_DELETING": str(stuck)}).wait_ready()
        wait_until(pathlib.Path(f"{file}.reached").exists, "a file to be deleted")
        # Recording goes on, and on the other disk old files are deleted.
        written = len(list(stuck.glob("*.ts")))
        wait_until(lambda: len(list(stuck.glob("*.ts"))) >= written + 2, "two more recordings")
        wait_until(lambda: len(list(pathlib.Path(fine).glob("*.ts"))) == 1, "one to be left")
        daemon.wait_metrics(
            lambda m: m.one("framelane_output_retention_errors_total", feed="stuck", output="rec",
                            reason="timeout") == 1, "the hanging call to be counted")
        daemon.wait_log(f"file system of {stuck}: a call has not returned for 5 s")
        reason = daemon.feed("stuck")["outputs"]["rec"]["retention_reason"]
        assert reason == "a call on its file system does not return"
        metrics = daemon.metrics()
        assert metrics.sum("framelane_output_up") == 2
        assert metrics.sum("framelane_output_packets_dropped_total") == 0
        assert metrics.one("framelane_threads_abandoned_total") == 0
        assert metrics.sum("framelane_output_retention_errors_total", feed="fine") == 0
        daemon.stop(deadline=5)
        assert "was abandoned" in daemon.log()
        assert not list(stuck.glob("*.part"))


def test_a_disk_that_hangs_when_a_playlist_is_left_holds_up_nothing_else(framelane, camera_clip, hang,
                                                                         tmp_path):
    environment, file = hang
    daemon = framelane({"feeds": {
        name: {"input": looped(camera_clip), "encodes": {"main": COPY},
               "outputs": {"hls": {"url": str(tmp_path / name / "index.m3u8"),
                                   "options": {"hls_list_size": 0}}}}
        for name in ("stuck", "fine")
    }}, env={**environment, "FRAMELANE_TEST_HANG_DELETING": str(tmp_path / "stuck")}).wait_ready()
    for name in ("stuck", "fine"):
        wait_until((tmp_path / name / "index.m3u8").exists, "a segment")
    file.touch()
    daemon.restart_feed("stuck")
    wait_until(pathlib.Path(f"{file}.reached").exists, "the lock of the playlist to be removed")
    daemon.wait_log("feed stuck: 1 of its threads did not end when asked to and was abandoned")
    assert daemon.request("GET", "/healthz")[0] == 200
    daemon.stop()
    assert "feed fine: ended" in daemon.log()


def test_an_encoder_that_hangs_with_its_packets_is_noticed_and_starts_again(framelane, camera_clip,
                                                                           hang):
    """It takes 16 s, since a call has 10 s, and 5 s more until it counts as hanging."""
    environment, file = hang
    daemon = framelane({"feeds": {
        "cam": {"input": looped(camera_clip), "encodes": {"main": x264()},
                "outputs": {"file": {"url": "null:"}}},
        "other": {"input": looped(camera_clip), "encodes": {"main": COPY},
                  "outputs": {"file": {"url": "null:"}}},
    }}, env={**environment, "FRAMELANE_TEST_HANG_RECEIVING": "1"}).wait_ready()
    daemon.wait_frames("cam", 10)
    file.touch()
    daemon.wait_log("feed cam: encode main: a call of libx264 does not come to an end; its thread "
                    "is abandoned: check the load of this machine", deadline=25)
    metrics = daemon.wait_state("cam", "backoff")
    assert metrics.sum("framelane_frames_in_flight", feed="cam") == 0
    assert metrics.one("framelane_feed_state", feed="other", state="running") == 1
    file.unlink()
    daemon.wait_more_frames("cam", 10)
    assert daemon.metrics().one("framelane_threads_abandoned_total") == 1
    daemon.stop()
