# Longer than 400 lines: each way to start, to stop and to die has its test, with the same feeds.
"""Starting, stopping and dying, and the files that are left each time."""

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import termios
import time

import pytest

from harness import media
from harness.camera import free_port
from harness.complaints import complaints
from harness.configs import COPY, IMPATIENT, beside_another, encoder, looped, one_feed, x264
from harness.daemon import BINARY, run
from harness.waiting import TIME_FACTOR, wait_until


def recording(tmp_path, camera_clip):
    """A feed that writes one file of each kind, for as long as it runs."""
    return one_feed(looped(camera_clip), x264(), {
        "mp4": {"url": str(tmp_path / "out.mp4")},
        "mkv": {"url": str(tmp_path / "out.mkv")},
        "ts": {"url": str(tmp_path / "out.ts")},
        "rec": {"url": str(tmp_path / "rec" / "%H%M%S.mp4"), "segment": "1s"},
        "hls": {"url": str(tmp_path / "hls" / "index.m3u8"), "options": {"hls_time": 1}},
    })


@pytest.mark.sanitizers
def test_a_signal_completes_every_file(framelane, camera_clip, tmp_path):
    daemon = framelane(recording(tmp_path, camera_clip)).wait_ready()
    out = daemon.wait_frames("cam", 60).sum("framelane_frames_out_total", feed="cam")
    daemon.stop()
    assert "not delivered" not in daemon.log()
    assert not list(tmp_path.rglob("*.part"))
    media.close_playlist(tmp_path / "hls" / "index.m3u8")
    for name in ("out.mp4", "out.mkv", "out.ts", "hls/index.m3u8"):
        assert media.decodes_cleanly(tmp_path / name), name
    assert media.frame_count(tmp_path / "out.mkv") >= out
    segments = list((tmp_path / "rec").iterdir())
    assert sum(media.frame_count(segment) for segment in segments) >= out


def test_a_kill_leaves_playable_files_that_the_next_start_completes(
    framelane, camera_clip, tmp_path
):
    config = recording(tmp_path, camera_clip)
    daemon = framelane(config).wait_ready()
    daemon.wait_frames("cam", 80)
    daemon.kill()
    parts = sorted(tmp_path.rglob("*.part"))
    assert {part.name for part in parts} >= {"out.mp4.part", "out.mkv.part", "out.ts.part"}
    frames = {part: media.frame_count(part) for part in parts if part.stat().st_size > 10_000}
    assert all(frames[tmp_path / f"out.{kind}.part"] >= 50 for kind in ("mp4", "mkv", "ts"))
    for segment in (tmp_path / "hls").glob("*.ts"):
        assert segment.stat().st_size == 0 or media.frame_count(segment) > 0

    again = framelane(config).wait_ready()
    again.wait_frames("cam", 10)
    for kind in ("mp4", "mkv", "ts"):
        recovered = tmp_path / f"out.{kind}"
        # The fragment or cluster that was being written may be half, and is cut off.
        left = frames[tmp_path / f"out.{kind}.part"] - media.frame_count(recovered)
        assert 0 <= left <= (0 if kind == "ts" else 25)
        assert media.decodes_cleanly(recovered)
    again.stop()
    assert not list(tmp_path.rglob("*.part"))


def stop_in_time(daemon):
    """docs/operations.md promises it, for any number of peers that hang."""
    start = time.monotonic()
    daemon.stop(deadline=20)
    assert time.monotonic() - start < 10 * TIME_FACTOR, daemon.log()


def stalled_feed(peer, **outputs):
    """It would drain until the time is up, because nobody reads its output."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.bind(("127.0.0.1", 0))
    peer.listen()
    return one_feed(
        {"url": "lavfi:testsrc2=size=640x480:rate=30"},
        {"video": {"codec": [{"name": "rawvideo"}]}},
        {"stuck": {"url": f"tcp://127.0.0.1:{peer.getsockname()[1]}", "format": "nut",
                   "timeout": "60s", "queue": 4}, **outputs},
    )


def test_a_stop_with_a_stalled_output_ends_in_time_and_completes_the_others(framelane, tmp_path):
    path = tmp_path / "out.nut"
    with socket.socket() as peer:
        daemon = framelane(stalled_feed(peer, file={"url": str(path)})).wait_ready()
        daemon.wait_frames("cam", 4)
        daemon.wait_metrics(
            lambda m: m.sum("framelane_output_queue_packets", feed="cam", output="stuck") == 4
            and m.sum("framelane_ring_jobs", feed="cam") == 8,
            "a full queue and a full ring",
        )
        stop_in_time(daemon)
    assert media.frame_count(path) >= 4
    assert "abandoned" not in daemon.log()
    losses = [line for line in daemon.log().splitlines() if "not delivered" in line]
    assert len(losses) == 1, daemon.log()
    assert re.search(r"feed cam: stopped with [1-9]\d* frames? and [1-9]\d* packets? not delivered; "
                     r"7\.5 s were not enough for output stuck\b", losses[0])


def test_a_stop_with_a_slow_encoder_ends_in_time_and_completes_the_file(framelane, tmp_path):
    """The encoder holds about seventy frames, and each takes much time. Without B-frames it fills up
    sooner."""
    path = tmp_path / "out.mkv"
    encode = encoder("libx264", preset="placebo", threads=1, bf=0, **{"rc-lookahead": 60})
    daemon = framelane(
        one_feed({"url": "lavfi:testsrc2=size=1280x720:rate=30"}, encode,
                 {"file": {"url": str(path)}})
    ).wait_ready()
    daemon.wait_frames("cam", 1, deadline=60)
    stop_in_time(daemon)
    assert not list(tmp_path.glob("*.part"))
    assert media.decodes_cleanly(path)


@pytest.mark.parametrize("scheme", ["rtmp", "rtsp"])
def test_a_stop_does_not_wait_long_for_a_peer_that_does_not_answer(framelane, camera_clip, tmp_path,
                                                                  scheme):
    """It accepts the connection and says nothing. It would have a minute to do so."""
    path = tmp_path / "out.mkv"
    with socket.create_server(("127.0.0.1", 0)) as peer:
        url = f"{scheme}://127.0.0.1:{peer.getsockname()[1]}/live/a"
        silent = {"url": url, "timeout": "60s", **({"format": "rtsp", "options": {
            "rtsp_transport": "tcp"}} if scheme == "rtsp" else {})}
        daemon = framelane(one_feed(looped(camera_clip), COPY, {
            "silent": silent, "file": {"url": str(path)}})).wait_ready()
        connection, _ = peer.accept()
        with connection:
            daemon.wait_metrics(
                lambda m: m.sum("framelane_output_bytes_total", output="file") > 10_000,
                "a file that is written")
            start = time.monotonic()
            daemon.stop(deadline=20)
            assert time.monotonic() - start < 4 * TIME_FACTOR, daemon.log()
    assert media.decodes_cleanly(path)
    assert "output silent: cannot open " + url.replace("/live/a", "/live/") in daemon.log()
    assert "no progress for 1.5 s; it is being stopped" in daemon.log()
    assert "abandoned" not in daemon.log()


@pytest.mark.parametrize("scheme", ["rtsp", "http", "https", "tcp"])
def test_a_stop_does_not_wait_for_a_source_that_is_being_opened(framelane, scheme):
    """It accepts the connection and says nothing. It would have an hour to do so."""
    with socket.create_server(("127.0.0.1", 0)) as peer:
        peer.settimeout(15 * TIME_FACTOR)
        url = f"{scheme}://127.0.0.1:{peer.getsockname()[1]}/live"
        keys = {"rtsp": {"options": {"rtsp_transport": "tcp"}}, "tcp": {"format": "mpegts"}}
        daemon = framelane(one_feed({"url": url, "timeout": "1h", **keys.get(scheme, {})})).wait_ready()
        connection, _ = peer.accept()
        with connection:
            if scheme != "tcp":
                assert connection.recv(1)  # the source waits for the answer
            daemon.stop(deadline=3)
    assert "feed cam: ended" in daemon.log()
    assert not re.search(" (warn|error) ", daemon.log()), daemon.log()


def test_a_second_signal_ends_it_at_once(framelane):
    with socket.socket() as peer:
        daemon = framelane(stalled_feed(peer)).wait_ready()
        daemon.wait_frames("cam", 4)
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: daemon.request("GET", "/readyz")[0] == 503, "readyz to say stopping")
        start = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.wait_exit(deadline=5) == 128 + signal.SIGTERM
        assert time.monotonic() - start < 2 * TIME_FACTOR


def test_signals_that_mean_nothing_change_nothing(framelane, camera_clip):
    daemon = framelane(one_feed(looped(camera_clip))).wait_ready()
    signals = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
               signal.SIGIO, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX)
    for sign in signals:
        daemon.process.send_signal(sign)
    daemon.wait_more_frames("cam", 5)
    daemon.stop(sign=signal.SIGINT)
    assert "SIGINT: completing files" in daemon.log()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_stop_while_the_configuration_is_read_is_an_orderly_end(sign):
    """It waits for the rest of a configuration that comes through a pipe."""
    with subprocess.Popen([str(BINARY), "run", "-c", "/dev/stdin"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        def is_read():
            left = bytearray(4)
            fcntl.ioctl(process.stdin, termios.FIONREAD, left)
            return left == bytes(4)

        try:
            process.stdin.write(b"feeds: ")
            process.stdin.flush()
            wait_until(is_read, "the configuration to be read")
            process.send_signal(sign)
            assert process.wait(timeout=5 * TIME_FACTOR) == 0
        finally:
            process.kill()
        assert complaints(process.stdout.read().decode()) == ""


# framelane sets an environment variable before it reads its command line.
SIGNAL_AT_ONCE = """
#include <signal.h>
int setenv(const char* name, const char* value, int overwrite) { return raise(SIGUSR1); }
"""


@pytest.mark.parametrize("command, status", [(["run", "-c", "no-such.yaml"], 78), (["transcode"], 2)])
def test_signals_that_mean_nothing_change_nothing_in_the_first_moments(
    cli, tmp_path, command, status
):
    library = tmp_path / "signal.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"],
                   input=SIGNAL_AT_ONCE.encode(), check=True)
    done = cli(*command, env={**os.environ, "LD_PRELOAD": str(library)})
    assert done.returncode == status, done.stderr


def test_a_restarted_feed_reads_its_secret_files_again(
    framelane, camera, camera_clip, clip, tmp_path
):
    secret = tmp_path / "password"
    secret.write_text("0ld-w0rd")
    source = camera(camera_clip, auth="digest")
    url = source.url.replace("rtsp://", f"rtsp://{source.USER}:${{file:{secret}}}@")
    input_ = {"url": url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}
    daemon = framelane(beside_another(one_feed(input_), clip),
                       secrets=["0ld-w0rd", "s3cr3t-pa", source.PASSWORD]).wait_ready()
    daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="auth") >= 1,
        "the camera to refuse the password")
    daemon.wait_frames("other", 1)
    since = daemon.feed("other")["since"]
    secret.write_text("s3cr3t-pa$s\n")
    daemon.restart_feed("cam")
    daemon.wait_frames("cam", 5)
    secret.unlink()
    daemon.restart_feed("cam")
    daemon.wait_log("feed cam: goes on with the secrets that it had")
    daemon.wait_more_frames("cam", 5)
    assert daemon.feed("other")["since"] == since


def test_the_process_stays_healthy_while_a_hundred_feeds_read_their_secrets(framelane, tmp_path):
    secret = tmp_path / "password"
    secret.write_text("s3cr3t-pa$s")
    url = f"rtsp://viewer:${{file:{secret}}}@127.0.0.1:{free_port()}/"
    input_ = {"url": url, "reconnect": {"first": "60s", "max": "60s"}}
    outputs = {"record": {"url": str(tmp_path / "${feed}" / "%H%M%S.mp4"), "segment": "1m"}}
    feed = {"input": input_, "encodes": {"main": COPY}, "outputs": outputs}
    daemon = framelane({"feeds": {f"cam{i}": feed for i in range(100)}}, secrets=["s3cr3t-pa"])
    daemon.wait_ready()

    def wait_tries(count):
        def have_tried(metrics):
            assert daemon.request("GET", "/healthz")[0] == 200
            return metrics.sum("framelane_source_reconnects_total", reason="refused") >= count

        daemon.wait_metrics(have_tried, f"the feeds to try {count} times in all")

    wait_tries(100)
    for i in range(100):
        daemon.restart_feed(f"cam{i}")
    wait_tries(200)


def test_a_stop_does_not_wait_for_a_backoff(framelane):
    input_ = {"url": f"rtsp://127.0.0.1:{free_port()}/", "reconnect": {"first": "60s", "max": "60s"}}
    daemon = framelane(one_feed(input_)).wait_ready()
    daemon.wait_state("cam", "backoff")
    start = time.monotonic()
    daemon.stop()
    assert time.monotonic() - start < 2 * TIME_FACTOR


def test_once_ends_when_every_feed_has_ended(framelane, clip, tmp_path):
    config = one_feed({"url": str(clip)}, x264(), {"file": {"url": str(tmp_path / "a.mkv")}})
    config["feeds"]["second"] = {"input": {"url": "lavfi:testsrc2=duration=1"}}
    daemon = framelane(config, arguments=["--once"])
    assert daemon.wait_exit(deadline=30) == 0
    assert media.frame_count(tmp_path / "a.mkv") == 42


def test_a_port_that_is_taken_is_one_line_and_exit_1(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        path = tmp_path / "framelane.yaml"
        path.write_text(
            f'admin: {{listen: "127.0.0.1:{port}"}}\n'
            "feeds:\n  cam:\n    input: {url: \"lavfi:testsrc2\"}\n"
            f"    outputs: {{file: {{url: \"{tmp_path}/out.mkv\"}}}}\n"
        )
        done = run("run", "-c", path, timeout=10)
    assert done.returncode == 1
    assert len([line for line in done.stderr.splitlines() if str(port) in line]) == 1, done.stderr
    assert not list(tmp_path.glob("out*"))


def test_a_gpu_that_is_not_there_is_one_line_and_exit_1(cli, tmp_path):
    path = tmp_path / "framelane.yaml"
    path.write_text("device: cuda:97\nfeeds: {cam: {input: {url: \"lavfi:testsrc2\"}}}\n")
    done = cli("run", "-c", path, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 1
    assert len([line for line in done.stderr.splitlines() if "cuda" in line]) == 1, done.stderr


def test_a_log_without_standard_descriptors_lands_in_no_file(tmp_path, clip):
    """Otherwise the first file that is opened gets the number of a descriptor that was closed."""
    outputs = {kind: {"url": str(tmp_path / f"out.{kind}")} for kind in ("mkv", "ts", "mp4")}
    path = tmp_path / "framelane.yaml"
    path.write_text(json.dumps({"log": {"level": "trace"}, "admin": {"listen": ""},
                                **one_feed({"url": str(clip)}, COPY, outputs)}))
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" run --once -c "$1" <&- >&- 2>&-', str(BINARY), str(path)],
        timeout=30 * TIME_FACTOR, check=False)
    assert done.returncode == 0
    for kind in outputs:
        assert b"framelane" not in (tmp_path / f"out.{kind}").read_bytes()
        assert media.decodes_cleanly(tmp_path / f"out.{kind}"), kind


def test_a_stale_admin_socket_is_replaced(framelane, clip):
    config = one_feed(looped(clip))
    framelane(config).wait_ready().kill()
    framelane(config).wait_ready().wait_frames("cam", 5)


@pytest.mark.sanitizers
def test_systemd_hears_ready_the_watchdog_and_stopping(framelane, clip, tmp_path):
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(10 * TIME_FACTOR)
        heard = []

        def wait_for(word):
            while not any(word in message for message in heard):
                heard.append(manager.recv(4096).decode())
            return heard

        daemon = framelane(
            one_feed(looped(clip)), env={"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "1000000"}
        )
        assert any(message.startswith("READY=1\nSTATUS=") and " of 1 feed up" in message
                   for message in wait_for("READY=1")), heard
        daemon.wait_ready()
        del heard[:]
        start = time.monotonic()
        wait_for("WATCHDOG=1")
        del heard[:]
        wait_for("WATCHDOG=1")
        assert time.monotonic() - start < 2 * TIME_FACTOR
        # A manager reads all the time: the socket holds few messages, and whoever sends more waits.
        daemon.process.send_signal(signal.SIGTERM)
        wait_for("STOPPING=1")
        manager.settimeout(0.1)
        deadline = time.monotonic() + 15 * TIME_FACTOR
        while daemon.process.poll() is None and time.monotonic() < deadline:
            try:
                manager.recv(4096)
            except TimeoutError:
                pass
        daemon.stop()


def test_an_ended_feed_runs_again_when_asked_and_keeps_its_counts(framelane, clip):
    daemon = framelane(one_feed({"url": str(clip)})).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.restart_feed("cam")
    metrics = daemon.wait_frames("cam", 84)
    assert metrics.one("framelane_frames_in_total", feed="cam") == 84


def test_requests_to_restart_a_feed_that_is_being_restarted_change_nothing(framelane):
    """It drains to a peer that never reads, until it is cancelled."""
    with socket.socket() as peer:
        daemon = framelane(stalled_feed(peer), arguments=["--once"]).wait_ready()
        daemon.wait_frames("cam", 4)
        since = daemon.feed("cam")["since"]

        def restarted():
            daemon.restart_feed("cam")
            return daemon.feed("cam")["since"] != since

        wait_until(restarted, "the feed to be started again", 20)
        assert daemon.process.poll() is None
        # The last requests may have come after the restart.
        assert daemon.log().count("restarting on request") <= 5
        daemon.kill()


def test_a_restart_of_one_feed_leaves_the_others_alone(framelane, clip):
    config = beside_another(one_feed(looped(clip)), clip)
    daemon = framelane(config).wait_ready()
    daemon.wait_frames("cam", 5)
    since = daemon.feed("other")["since"]
    daemon.restart_feed("cam")
    count = daemon.metrics().sum("framelane_frames_out_total", feed="cam")
    daemon.wait_frames("cam", count + 10)
    assert daemon.feed("other")["since"] == since


def test_impatient_feeds_leave_no_threads_or_descriptors_behind(framelane):
    url = f"rtsp://127.0.0.1:{free_port()}/"
    daemon = framelane(
        one_feed({"url": url, **IMPATIENT, "reconnect": {"first": "10ms", "max": "10ms"}})
    ).wait_ready()

    def reconnects(count):
        return lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= count

    def held():
        return len(os.listdir(f"/proc/{daemon.process.pid}/fd")), daemon.threads()

    daemon.wait_metrics(reconnects(5), "5 reconnects")
    before = held()
    daemon.wait_metrics(reconnects(60), "60 reconnects")
    after = held()
    assert after[0] <= before[0] + 2 and after[1] <= before[1] + 1
