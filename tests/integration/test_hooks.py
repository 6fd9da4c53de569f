"""Webhooks: recordings and incidents are told, signed, in order, and without delaying anything."""

import datetime
import pathlib
import re
import socket
import subprocess
import time

import pytest

from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, looped, one_feed
from harness.daemon import ROOT
from harness.hook_receiver import HookReceiver
from harness.waiting import TIME_FACTOR, wait_until

SECRET = "0123456789abcdef0123"
STOP = 10 * TIME_FACTOR  # seconds


@pytest.fixture
def receiver():
    """Makes receivers: receiver(statuses) -> HookReceiver. They end with the test."""
    made = []

    def make(*arguments, **keywords):
        made.append(HookReceiver(*arguments, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.close()


def recorded(clip, folder, hooks, length="1s"):
    """A feed with files of a second, and these hooks."""
    outputs = {"rec": {"url": str(folder / "rec" / "%s.mkv"), "segment": length}}
    return {**one_feed(looped(clip), COPY, outputs), "hooks": hooks}


def with_dead_feed(config):
    config["feeds"]["dead"] = {"input": {"url": f"rtsp://127.0.0.1:{free_port()}/", **IMPATIENT}, "encodes": {"main": COPY}}
    return config


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def hook(receiver, name="store", on="segment", **keys):
    return {"name": name, "on": on, "url": receiver.url(), **keys}


def delivered(daemon, name):
    return daemon.metrics().one("framelane_hook_deliveries_total", hook=name, result="delivered")


@pytest.mark.sanitizers
def test_files_and_incidents_are_told_and_signed(framelane, receiver, camera_clip, tmp_path):
    taker = receiver()
    config = with_dead_feed(recorded(camera_clip, tmp_path, [hook(taker, on=["segment", "incident"], secret=SECRET)]))
    daemon = framelane(config).wait_ready()
    taker.wait_events(2, "segment")
    told = taker.wait_events(2, "incident")
    assert [event["incident"]["kind"] for event in told[:2]] == ["started", "source_lost"]
    lost = told[1]["incident"]
    known = next(one for one in daemon.api("/api/v1/incidents")["incidents"] if one["id"] == lost["id"])
    assert lost == {**known, "retries": lost["retries"]}
    assert (lost["feed"], lost["end"]) == ("dead", None)
    wait_until(lambda: delivered(daemon, "store") == len(taker.requests), "as many deliveries counted as came")
    daemon.stop()

    # Each file once, with the last one; and the end of what began.
    files = {event["file"]: event for event in taker.events("segment")}
    assert len(files) == len(taker.events("segment"))
    assert set(map(pathlib.Path, files)) == set((tmp_path / "rec").iterdir())
    for path, event in files.items():
        assert (event["feed"], event["output"]) == ("cam", "rec")
        assert event["bytes"] == pathlib.Path(path).stat().st_size
    in_order = taker.events("segment")
    for one, following in zip(in_order, in_order[1:]):
        assert seconds(one["begin"]) + 0.9 < seconds(one["end"]) == pytest.approx(seconds(following["begin"]), abs=0.05)
    ended = [event["incident"] for event in taker.events("incident")][2:]
    assert [(one["kind"], one["end"] is None) for one in ended] == [("source_lost", False), ("stopped", False)]
    assert ended[0]["id"] == lost["id"]
    for request in taker.requests:
        assert request.is_signed(SECRET)
        assert request.headers["Content-Type"] == "application/json"
        assert re.fullmatch(r"framelane/[\d.]+", request.headers["User-Agent"])
        assert request.headers["X-Framelane-Event"] == request.event["event"]
        assert request.headers["X-Framelane-Delivery"] == request.event["id"]
    assert len({event["id"] for event in taker.events()}) == len(taker.requests)


def test_failures_are_tried_again_in_order_or_given_up(framelane, receiver, camera_clip, tmp_path):
    busy, picky = receiver([500, (429, {"Retry-After": "1"})]), receiver([204, 400, (302, {"Location": "/other"})])
    moody = receiver([500, 404])  # first it is to be asked again, and then it refuses
    config = recorded(camera_clip, tmp_path, [hook(busy, "busy"), hook(picky, "picky"), hook(moody, "moody")])
    daemon = framelane(config).wait_ready()
    first = busy.wait_events(3)
    assert len({event["id"] for event in first[:3]}) == 1
    picky.wait_events(4)
    moody.wait_events(3)
    metrics = daemon.wait_metrics(lambda m: m.one("framelane_hook_queue", hook="busy") == 0
                                  and m.one("framelane_hook_deliveries_total", hook="picky", result="delivered") > 1,
                                  "all to be delivered")
    assert metrics.one("framelane_hook_retries_total", hook="busy") == 2
    assert metrics.one("framelane_hook_retries_total", hook="picky") == 0
    assert metrics.one("framelane_hook_deliveries_total", hook="picky", result="failed") == 2
    daemon.stop()
    in_order = [event["file"] for event in busy.events()[2:]]
    assert in_order == sorted(set(in_order)) == sorted(event["file"] for event in picky.events())
    lines = [line for line in daemon.log().splitlines() if "hook " in line]
    assert [line.split("hook ", 1)[1].split(";")[0] for line in lines if "busy" in line] == [
        "busy: its receiver answers with HTTP status 500", "busy: delivers again"]
    assert [line.split("hook ", 1)[1].split(";")[0] for line in lines if "picky" in line] == [
        "picky: its receiver answers with HTTP status 400", "picky: delivers again"]
    assert [line.split("hook ", 1)[1] for line in lines if "moody" in line] == [
        "moody: its receiver answers with HTTP status 500; events wait, and are tried again until it takes them",
        "moody: its receiver answers with HTTP status 404; what it refuses is given up, since another try would not help",
        "moody: delivers again"]


def test_a_receiver_that_does_not_answer_delays_nothing(framelane, receiver, camera_clip, tmp_path):
    silent, good = receiver(), receiver()
    silent.silent.set()
    daemon = framelane(recorded(camera_clip, tmp_path, [
        hook(silent, "silent", timeout="5m"), hook(good, "good")])).wait_ready()
    good.wait_events(4)
    assert len(silent.requests) == 1
    assert daemon.metrics().one("framelane_hook_queue", hook="silent") >= 3
    begin = time.monotonic()
    daemon.stop()
    assert time.monotonic() - begin < STOP
    files = len(list((tmp_path / "rec").iterdir()))
    assert len(good.requests) == files
    assert f"hook silent: ends, and {files} events are dropped" in daemon.log()
    assert daemon.log().count("hook silent") == 1


def test_certificates_are_checked(framelane, receiver, camera_clip, tmp_path):
    for name in ("trusted", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.pem", "-days", "2",
                        "-subj", "/CN=hooks", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
    trusted, other = (receiver(certificate=(tmp_path / f"{name}.pem", tmp_path / f"{name}.key"))
                      for name in ("trusted", "other"))
    hooks = [{"name": "trusted", "on": "segment", "url": trusted.url(scheme="https", host="localhost")},
             {"name": "named", "on": "segment", "url": trusted.url(scheme="https")},
             {"name": "other", "on": "segment", "url": other.url(scheme="https", host="localhost")}]
    daemon = framelane(recorded(camera_clip, tmp_path, hooks),
                       env={"SSL_CERT_FILE": str(tmp_path / "trusted.pem")}).wait_ready()
    trusted.wait_events(1)
    for name in ("named", "other"):
        daemon.wait_log(f"hook {name}: its certificate is not accepted: ")
    assert not other.requests
    daemon.stop()
    assert all(request.event["event"] == "segment" for request in trusted.requests)


def test_a_reload_loses_nothing_of_a_hook_that_stays(framelane, receiver, camera_clip, tmp_path):
    taker, gone = receiver(), {"name": "gone", "on": "segment", "url": f"http://127.0.0.1:{free_port()}/"}
    config = recorded(camera_clip, tmp_path, [{**gone, "name": "store", "url": gone["url"] + "in"}, gone])
    daemon = framelane(config).wait_ready()
    daemon.wait_metrics(lambda m: m.one("framelane_hook_queue", hook="store") >= 2, "events to wait")
    daemon.reload({**config, "hooks": [hook(taker), {"on": "incident", "url": taker.url()}]})
    daemon.wait_metrics(lambda m: m.one("framelane_hook_queue", hook="store") == 0, "the queue to be empty")
    assert re.search(r"hook gone: ends, and \d+ events? (is|are) dropped", daemon.log())
    taker.wait_events(1, "incident")
    metrics = daemon.metrics()
    assert {labels["hook"] for labels, _ in metrics.samples["framelane_hook_queue"]} == {"store", "127.0.0.1"}
    daemon.stop()
    assert set(map(pathlib.Path, (event["file"] for event in taker.events("segment")))) == set(
        (tmp_path / "rec").iterdir())


def test_the_example_moves_recordings_to_a_store(framelane, start, cif_clip, tmp_path, request):
    """docs/connecting.md, "Recordings to an object store"."""
    secret, store, log = tmp_path / "secret", tmp_path / "store", tmp_path / "receiver.log"
    secret.write_text(f"{SECRET}\n")
    store.write_text("in the way")  # the store is out of reach
    (tmp_path / "rclone.conf").write_text(f"[store]\ntype = alias\nremote = {store}\n")
    with open(log, "wb") as output:
        start(ROOT / "examples" / "store_segments", "--secret", secret, "--folder", tmp_path / "rec", "--store",
              "store:recordings", "--listen", "127.0.0.1:0", stderr=output,
              env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "RCLONE_CONFIG": str(tmp_path / "rclone.conf")})
    port = wait_until(lambda: re.search(r"listening on 127.0.0.1:(\d+)", log.read_text()), "the receiver").group(1)
    with socket.create_connection(("127.0.0.1", int(port)), 10) as client:
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.0 400 ")
    silent = socket.create_connection(("127.0.0.1", int(port)))  # holds up nothing
    request.addfinalizer(silent.close)
    hooks = [{"name": name, "on": ["segment", "incident"], "url": f"http://127.0.0.1:{port}/{name}", "secret": key,
              "timeout": "5m"} for name, key in (("store", SECRET), ("forged", SECRET[::-1]))]
    config = recorded(cif_clip, tmp_path, hooks, "5s")
    config["feeds"]["cam"]["input"] = {"url": str(cif_clip)}  # which ends
    daemon = framelane(config).wait_ready()
    daemon.wait_log("hook store: its receiver answers with HTTP status 503")
    daemon.wait_log("hook forged: its receiver answers with HTTP status 401")
    daemon.wait_state("cam", "ended")
    store.unlink()
    daemon.wait_metrics(lambda m: m.one("framelane_hook_queue", hook="store") == 0, "all files to be moved", 30)
    complete = daemon.log().count("output rec: completed")
    assert len(list((store / "recordings").iterdir())) == complete >= 4
    assert not list((tmp_path / "rec").iterdir())
