"""Calls that do not return, or late: their threads are abandoned, and stops stay clean."""

import pathlib
import signal
import socket
import tempfile
import threading

import pytest

from harness.configs import COPY, IMPATIENT, looped, raw_input, x264
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
    framelane, camera_clip, hang
):
    """It takes 16 s, since a call has 10 s, and 5 s more until it counts as hanging."""
    environment, file = hang
    with socket.create_server(("127.0.0.1", 0)) as server:
        read_all(server)
        peer = {"url": f"tcp://127.0.0.1:{server.getsockname()[1]}", "format": "mpegts", **IMPATIENT}
        daemon = framelane({"feeds": {
            "cam": {"input": looped(camera_clip), "encodes": {"main": x264()},
                    "outputs": {"file": {"url": "null:"}}},
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
        daemon.wait_log("feed cam: encode main: a call of libx264 does not come to an end; its thread "
                        "is abandoned: check the load of this machine", deadline=25)
        metrics = daemon.wait_state("cam", "backoff")
        assert metrics.one("framelane_feed_up", feed="cam") == 0
        assert metrics.sum("framelane_ring_jobs", feed="cam") == 0
        assert metrics.sum("framelane_frames_in_flight", feed="cam") == 0
        assert metrics.one("framelane_feed_state", feed="other", state="running") == 1
        file.unlink()
        daemon.wait_more_frames("cam", 10)
        daemon.wait_state("push", "running")
        assert daemon.metrics().one("framelane_threads_abandoned_total") >= 2
        assert "feed other" not in "".join(
            line for line in daemon.log().splitlines() if " error " in line)


def test_a_stop_while_an_encoder_is_opened_opens_no_other(framelane, camera_clip, hang, tmp_path):
    environment, file = hang
    file.touch()
    daemon = framelane({"feeds": {
        "cam": {"input": looped(camera_clip), "encodes": {"first": x264(), "second": x264()},
                "outputs": {name: {"from": name, "url": str(tmp_path / f"{name}.mkv")}
                            for name in ("first", "second")}},
        "other": {"input": looped(camera_clip), "encodes": {"main": COPY},
                  "outputs": {"file": {"url": str(tmp_path / "other.mkv")}}},
    }}, env=environment).wait_ready()
    wait_until(pathlib.Path(f"{file}.reached").exists, "an encoder to be opened")
    daemon.wait_metrics(lambda m: m.sum("framelane_output_bytes_total", feed="other") > 0,
                        "the other feed's file to be written")
    daemon.process.send_signal(signal.SIGTERM)
    daemon.wait_log("feed other: output file: completed")  # feeds are stopped in their order
    file.unlink()
    assert daemon.wait_exit() == 0
    assert "encode second" not in daemon.log()
    assert "error" not in daemon.log()
    assert [path.name for path in tmp_path.glob("*.mkv*")] == ["other.mkv"]
