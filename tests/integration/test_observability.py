"""What Prometheus, an orchestrator and an operator see."""

import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest

from harness import media, metrics_page
from harness.camera import free_port
from harness.configs import IMPATIENT, dead_hooks, every_kind_of_feed, looped, one_feed, x264
from harness.daemon import ROOT, run
from harness.metrics import Metrics
from harness.metrics_page import FIXED

GOLDEN = pathlib.Path(__file__).with_name("golden_metrics.txt")

PAGE = ROOT / "docs" / "metrics.md"


def busy_daemon(framelane, clip, tmp_path):
    daemon = framelane({"feeds": every_kind_of_feed(clip, tmp_path), "hooks": dead_hooks()}).wait_ready()
    daemon.wait_frames("live", 10)
    return daemon


def shape(metrics):
    """One line per family: name, type, and its labels with the values of the fixed sets."""
    lines = []
    for name, kind in sorted(metrics.types.items()):
        labels = {}
        for suffix in ("", "_bucket", "_sum", "_count"):
            for have, _ in metrics.samples.get(name + suffix, []):
                for label, value in have.items():
                    labels.setdefault(label, set()).add(value)
        labels.pop("le", None)
        described = [
            f"{label}={'|'.join(sorted(values))}" if label in FIXED else label
            for label, values in sorted(labels.items())
        ]
        lines.append(" ".join([name, kind, *described]))
    return "\n".join(lines) + "\n"


@pytest.mark.sanitizers
def test_metrics_are_the_golden_ones(framelane, clip, tmp_path):
    metrics = busy_daemon(framelane, clip, tmp_path).metrics()
    actual = shape(metrics)
    if os.environ.get("FRAMELANE_UPDATE_GOLDEN"):
        GOLDEN.write_text(actual)
    assert actual == GOLDEN.read_text()
    assert all(metrics.helps.get(name) for name in metrics.types)


def test_the_page_of_metrics_is_golden_too(with_gpu):
    """FRAMELANE_UPDATE_GOLDEN=1 writes what the program says into the page's rows."""
    scrape = with_gpu.metrics()
    page = PAGE.read_text(encoding="utf-8")
    assert sorted(metrics_page.rows(page)) == sorted(scrape.types), "each metric has one row in docs/metrics.md"
    said = metrics_page.rewritten(page, [scrape])
    if os.environ.get("FRAMELANE_UPDATE_GOLDEN"):
        PAGE.write_text(said, encoding="utf-8")
    assert said == PAGE.read_text(encoding="utf-8")


def test_secrets_in_options_are_shown_nowhere(framelane, http_camera, clip, tmp_path):
    """They come from the environment; what comes from a file is a secret wherever it stands."""
    key, stream_id = "zebra-41-s3cr3t", "publish-otter-s3cr3t"
    stream = media.ffmpeg("-i", clip, "-c", "copy", "-f", "mpegts", "-")
    source = http_camera(stream, "video/mp2t")
    config = one_feed(
        {"url": source.url, "options": {"headers": "X-Camera-Key: ${KEY}\r\n"}}, x264(),
        # The file's name shows whether the secret is known, whatever FFmpeg says of its options.
        {"file": {"url": f"{tmp_path}/{stream_id}-${{KEY}}.mkv"},
         "push": {"url": f"srt://127.0.0.1:{free_port()}", "format": "mpegts",
                  "options": {"streamid": "${STREAM_ID}"}, **IMPATIENT}})
    config["log"] = {"level": "trace"}
    daemon = framelane(config, secrets=[key, stream_id],
                       env={"KEY": key, "STREAM_ID": stream_id}).wait_ready()
    daemon.wait_frames("cam", 10)
    daemon.wait_metrics(lambda m: m.sum("framelane_output_reconnects_total", output="push") > 0,
                        "a try to push")
    said = daemon.metrics().text + daemon.request("GET", "/api/v1/feeds")[1]
    assert not any(secret in said for secret in (key, stream_id))
    daemon.stop()
    assert "X-Camera-Key: ***" in daemon.log()
    assert f"completed {tmp_path}/***-***.mkv" in daemon.log()


def test_promtool_finds_nothing_to_say(framelane, clip, tmp_path):
    tool = shutil.which("promtool") or str(ROOT / "build" / "tools" / "promtool")
    text = busy_daemon(framelane, clip, tmp_path).metrics().text
    done = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def promtool(*arguments):
    tool = shutil.which("promtool") or str(ROOT / "build" / "tools" / "promtool")
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          check=False)


def test_the_alerts_fire_when_they_should_and_only_then():
    done = promtool("test", "rules", pathlib.Path(__file__).with_name("alerts_test.yml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_configuration_of_the_composition(tmp_path):
    """It looks for the token's file too."""
    text = (ROOT / "docker" / "prometheus" / "prometheus.yml").read_text()
    (tmp_path / "framelane-read").write_text("0123456789abcdef")
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets", str(tmp_path)))
    shutil.copy(ROOT / "docker" / "prometheus" / "rules.yml", tmp_path)
    done = promtool("check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0 and "rules found" in done.stdout, done.stdout + done.stderr


def test_the_alerts_ask_for_metrics_and_labels_that_exist():
    families = {line.split()[0]: line for line in GOLDEN.read_text().splitlines()}
    text = (ROOT / "docker" / "prometheus" / "rules.yml").read_text()
    rules = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "action"))]
    # What the file itself records has colons in its name.
    asked = re.findall(r"(?<![\w:])(framelane_[a-z_]+)(?![\w:])(?:\{(\w+)(?:=~|!~|=|!=)\"([^\"]+)\"\})?", "\n".join(rules))
    assert len(asked) > 12
    for name, label, values in asked:
        assert name.removesuffix("_bucket") in families, name
        if label:
            known = re.search(rf"\b{label}=(\S+)", families[name]).group(1).split("|")
            assert set(values.split("|")) <= set(known), (name, label, values)


def test_every_reason_exists_from_the_start_at_zero(framelane):
    daemon = framelane(one_feed({"url": f"rtsp://127.0.0.1:{free_port()}/",
                                 "reconnect": {"first": "60s", "max": "60s"}})).wait_ready()
    metrics = daemon.metrics()
    reasons = {
        "framelane_frames_dropped_total": {"ring_full", "encoder", "device_lost", "feed_failed",
                                           "stop", "reload", "rate"},
        "framelane_decode_errors_total": {"corrupt", "unsupported", "truncated"},
        "framelane_source_reconnects_total": {"dns", "refused", "auth", "timeout", "eof", "io",
                                              "decode"},
        "framelane_feed_restarts_total": {"encoder", "device", "memory", "internal"},
        "framelane_timestamp_repairs_total": {"jump", "backward", "wrap", "missing"},
        "framelane_host_copies_total": {"format", "decoder", "alignment", "mask"},
    }
    for name, wanted in reasons.items():
        assert {labels["reason"] for labels, _ in metrics.series(name, feed="cam")} == wanted, name
    assert metrics.sum("framelane_frames_dropped_total") == 0


def test_healthcheck_follows_readiness(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    assert run("healthcheck", "-c", daemon.config_path).returncode == 0
    daemon.stop()
    done = run("healthcheck", "-c", daemon.config_path)
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1


def test_healthcheck_reads_the_listener_and_nothing_else(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    config = json.loads(daemon.config_path.read_text())
    config["typo"] = 1
    config["feeds"]["cam"]["input"]["url"] = "${FRAMELANE_NOT_SET}"
    daemon.config_path.write_text(json.dumps(config))
    assert run("check", "-c", daemon.config_path).returncode == 78
    done = run("healthcheck", "-c", daemon.config_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_healthcheck_says_why_a_configuration_cannot_be_read(tmp_path):
    done = run("healthcheck", "-c", tmp_path)
    assert done.returncode == 78
    assert done.stderr == (f"{tmp_path}:1:1: cannot be read: Is a directory; name another file with -c\n")


def test_healthcheck_shows_no_password_of_the_address(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cr3t-name")
    config = tmp_path / "framelane.yaml"
    config.write_text(f'admin: {{listen: "unix:/nowhere/${{file:{secret}}}"}}\n')
    for arguments in (["-c", config], ["--url", f"http://user:s3cr3t-pass@127.0.0.1:{free_port()}"]):
        done = run("healthcheck", *arguments)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
        assert "s3cr3t" not in done.stderr


def test_healthcheck_takes_an_address(framelane, clip):
    port = free_port()
    daemon = framelane(one_feed(looped(clip)), port=port).wait_ready()
    assert run("healthcheck", "--url", f"http://127.0.0.1:{port}").returncode == 0
    daemon.stop()
    assert run("healthcheck", "--url", f"http://127.0.0.1:{port}").returncode == 1


def test_a_dead_camera_fails_neither_probe(framelane, clip, tmp_path):
    daemon = busy_daemon(framelane, clip, tmp_path)
    assert daemon.request("GET", "/healthz")[0] == 200
    assert daemon.request("GET", "/readyz")[0] == 200
    assert daemon.metrics().one("framelane_feed_up", feed="dead") == 0


def test_the_api_tells_what_the_metrics_tell(framelane, clip, tmp_path):
    daemon = framelane(one_feed({"url": str(clip)}, x264(),
                                {"file": {"url": str(tmp_path / "out.mkv")}})).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    feed = daemon.feed("cam")
    assert feed["name"] == "cam" and feed["state"] == "ended"
    encode = feed["encodes"]["main"]
    assert (encode["codec"], encode["in"], encode["out"], encode["in_flight"]) == (
        "libx264", 42, 42, 0)
    assert sum(encode["dropped"].values()) == 0
    assert (feed["decoder"], feed["decoder_reason"]) == ("h264", None)
    assert feed["device"] == "cpu"
    assert feed["outputs"]["file"]["bytes"] == metrics.one(
        "framelane_output_bytes_total", feed="cam", output="file")


def test_what_does_not_exist_is_an_error_object(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    for path in ("/api/v1/feeds/none", "/no/such/path", "/api/v1/feeds/../../etc/passwd"):
        status, body = daemon.request("GET", path)
        assert status == 404, path
        assert json.loads(body)["error"]["message"]
    assert daemon.request("DELETE", "/api/v1/feeds/cam")[0] in (404, 405)


def test_a_foreign_page_cannot_control_it(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    since = daemon.feed("cam")["since"]
    assert daemon.request("POST", "/api/v1/feeds/cam/restart")[0] == 403
    assert daemon.feed("cam")["since"] == since


def test_a_name_made_to_resolve_to_it_gets_nothing(framelane, clip):
    port = free_port()
    daemon = framelane(one_feed(looped(clip)), port=port).wait_ready()
    for host, expected in (("evil.example", 403), ("localhost", 200), (f"127.0.0.1:{port}", 200)):
        assert daemon.request("GET", "/metrics", headers={"Host": host})[0] == expected, host


@pytest.mark.parametrize("hosts, expected", [
    (["[::1].evil.example"], 400), (["localhost", "evil.example"], 400), (["[::1]:9853"], 200),
], ids=["a name like an address", "two", "an address"])
def test_a_host_header_counts_as_a_whole(framelane, clip, hosts, expected):
    port = free_port()
    framelane(one_feed(looped(clip)), port=port).wait_ready()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("GET", "/metrics", skip_host=True)
    for host in hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    assert connection.getresponse().status == expected
    connection.close()


@pytest.mark.sanitizers
def test_slow_and_half_open_clients_hold_up_nobody(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    idle = []
    try:
        for number in range(16):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(daemon.socket))
            if number % 2:
                client.sendall(b"GET /metrics HT")
            idle.append(client)
        assert daemon.metrics().series("framelane_feed_up", feed="cam")
    finally:
        for client in idle:
            client.close()


def test_garbage_and_too_large_requests_are_refused(framelane, clip):
    daemon = framelane(one_feed(looped(clip))).wait_ready()
    for request in (b"\x00\xff\x01garbage\r\n\r\n", b"GET / HTTP/1.1\r\nA: " + b"x" * 300_000):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(str(daemon.socket))
            try:
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                answer = client.recv(4096)
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
        assert b" 200 " not in answer.split(b"\r\n")[0]
    assert daemon.request("GET", "/healthz")[0] == 200


# As docs/configuration.md has them.
JSON_NAMES = {"ts", "level", "feed", "encode", "output", "code", "reason", "msg"}


def test_the_log_can_be_json(framelane, clip):
    config = one_feed({"url": str(clip)})
    config["log"] = {"format": "json", "level": "debug"}
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert lines and all({"ts", "level", "msg"} <= line.keys() <= JSON_NAMES for line in lines)
    assert any(line.get("feed") == "cam" and line.get("encode") == "main" for line in lines)


def test_build_info_names_the_version(framelane, clip):
    metrics: Metrics = framelane(one_feed(looped(clip))).wait_ready().metrics()
    [(labels, value)] = metrics.series("framelane_build_info")
    assert value == 1
    assert labels["version"] in run("--version").stdout


def test_process_metrics_are_there(framelane, clip):
    metrics = framelane(one_feed(looped(clip))).wait_ready().metrics()
    assert metrics.one("process_resident_memory_bytes") > 1_000_000
    assert metrics.one("process_open_fds") > 3
    assert metrics.one("process_start_time_seconds") > 1_500_000_000


def test_lanes_and_overlap_are_shown(framelane, bgra):
    feed = {"url": str(bgra), "format": "rawvideo", "pixel_format": "bgra", "size": "64x48",
            "rate": 25, "loop": True, "pace": "realtime"}
    daemon = framelane(one_feed(feed)).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_lane_busy_seconds_total", feed="cam", op="kernel") > 0,
        "a busy lane",
    )
    assert len(metrics.series("framelane_lane_occupancy_ratio", feed="cam")) == 3
    assert all(0 <= v <= 1 for _, v in metrics.series("framelane_lane_occupancy_ratio"))
    assert metrics.one("framelane_device_up", device="cpu") == 1
    devices = {labels["device"] for samples in metrics.samples.values()
               for labels, _ in samples if "device" in labels}
    assert devices == {"cpu"}
