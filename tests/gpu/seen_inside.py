"""Tests on a real GPU that an operator can see inside: a trace shows that lanes' uploads, kernels and downloads
overlap; and where other feeds saturate the bus, a camera's feed that has to wait for it says so. Needs no pytest.

    FRAMELANE_BINARY=$PWD/build/gpu/daemon/framelane python3 tests/gpu/seen_inside.py FOLDER

FOLDER: where the traces and what was seen are left."""

import contextlib
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from harness.configs import encoder, raw_input  # noqa: E402
from harness.daemon import BINARY, Daemon  # noqa: E402
from harness.events import Events  # noqa: E402
from harness.trace_file import Trace  # noqa: E402

SLOTS = 16  # of a producer: the ring's 8 jobs, those in hand, and room
SETTLED = 12  # seconds: the window over which steps are judged, and a little


def feed(path, size, encodes, **keys):
    """Raw BGRA from a file that is read in a loop, or from shared memory. The encoder takes no time."""
    loop = {} if str(path).startswith("shm:") else {"loop": True}
    input_ = raw_input(path, "bgra", size, 60, **loop, **keys.pop("input", {}))
    made = {name: encoder("wrapped_avframe", convert={"format": "nv12", **convert})
            for name, convert in encodes.items()}
    return {"input": input_, "encodes": made, **keys,
            "outputs": {name: {"from": name, "url": "null:", "queue": 32} for name in made}}


def raw_file(folder, size):
    width, height = map(int, size.split("x"))
    path = folder / f"{size}.raw"
    path.write_bytes(os.urandom(width * height * 4) * 2)
    return path


def trace(daemon, seconds, path):
    """A trace, which is also left for people."""
    text = daemon.request("GET", f"/api/v1/trace?seconds={seconds}")[1]
    with gzip.open(path, "wt") as file:
        file.write(text)
    return Trace(text)


def overlap(one, other):
    """Seconds in which both lists of slices are busy. Slices of one list do not overlap."""
    both, i, j = 0, 0, 0
    while i < len(one) and j < len(other):
        both += max(0, min(one[i].end, other[j].end) - max(one[i].begin, other[j].begin))
        if one[i].end < other[j].end:
            i += 1
        else:
            j += 1
    return float(both) / 1e9


def lanes_overlap(folder, kept):
    wanted = {"main": {}, "p1080": {"size": "1920x1080"}, "p720": {"size": "1280x720"}}
    daemon = Daemon(folder, {"device": "cuda", "feeds": {
        "studio": feed(raw_file(folder, "3840x2160"), "3840x2160", wanted, on_full="block", lanes=3)}})
    try:
        daemon.wait_ready(60)
        daemon.wait_frames("studio", 2000, deadline=60)
        seen = trace(daemon, 1, kept / "lanes.json.gz")
        daemon.stop()
    finally:
        daemon.kill()
    for kind, other in (("h2d", "kernel"), ("h2d", "d2h"), ("kernel", "d2h")):
        seconds = overlap(seen.of(kind), seen.of(other))
        print(f"trace of 1 s: {kind} and {other} at the same time for {seconds:.3f} s")
        assert seconds > 0, (kind, other)


@contextlib.contextmanager
def producers(folder, size, count):
    """The sockets of programs that publish frames in shared memory faster than a bus carries them."""
    width, height = map(int, size.split("x"))
    tool = BINARY.parents[1] / "bench" / "framelane_capture_rate"
    running = []
    try:
        for number in range(count):
            socket = folder / f"{number}.sock"
            running.append(subprocess.Popen([tool, "--serve", socket, str(width * height * 4), str(SLOTS)],
                                            stdout=subprocess.PIPE))
            assert running[-1].stdout.readline() == b"ready\n"
        yield [folder / f"{number}.sock" for number in range(count)]
    finally:
        for process in running:
            process.kill()
            process.wait()


def a_saturated_bus_is_named(folder, kept):
    """What reads files cannot saturate a bus: the copies on the host are the limit."""
    with producers(folder, "7680x4320", 3) as sockets:
        feeds = {f"studio-{i}": feed(f"shm:{socket}", "7680x4320", {"main": {}}, on_full="block", lanes=8)
                 for i, socket in enumerate(sockets)}
        bus_is_named(feeds, folder, kept)


def bus_is_named(feeds, folder, kept):
    camera = raw_file(folder, "1920x1080")
    feeds["gate"] = feed(camera, "1920x1080", {"main": {}}, on_full="drop", lanes=2, ring=4,
                         input={"pace": "realtime"})
    seen = {}
    for what, names in (("alone", ["gate"]), ("beside", list(feeds))):
        daemon = Daemon(folder, {"device": "cuda", "feeds": {name: feeds[name] for name in names}})
        try:
            daemon.wait_ready(60)
            for name in names:
                daemon.wait_frames(name, 20, deadline=60)
            time.sleep(SETTLED)
            events = Events(daemon)
            status = events.next("status")
            events.close()
            metrics = daemon.metrics()
            incidents = daemon.api("/api/v1/incidents")["incidents"]
            trace(daemon, 1, kept / f"bus-{what}.json.gz")
            daemon.stop()
        finally:
            daemon.kill()
        (kept / f"bus-{what}.json").write_text(json.dumps({"status": status, "incidents": incidents}, indent=1))
        gate = next(feed for feed in status["feeds"] if feed["name"] == "gate")
        gpu = next(device for device in status["devices"] if device["device"] == "cuda:0")
        limits = [series["stage"] for series, value in metrics.series("framelane_feed_bottleneck", feed="gate") if value]
        users = {feed["name"]: feed["engines"]["h2d"] for feed in status["feeds"]}
        print(f"{what}: h2d is used by {users}")
        assert abs(sum(users.values()) - gpu["occupancy"]["h2d"]) < 0.03 and users["gate"] < 0.05, users
        print(f"{what}: bottleneck {gate['bottleneck']} {limits}, latency {gate['latency']}, in {gate['fps_in']}, "
              f"out {gate['fps_out']}, dropped {gate['dropped']}, engines {gpu['occupancy']}, "
              f"incidents {[i['text'] for i in incidents if i['feed'] == 'gate']}")
        seen[what] = limits, [gate["bottleneck"]]
    assert seen == {"alone": (["source"], ["source"]), "beside": (["h2d"], ["h2d"])}, seen


def main():
    kept = pathlib.Path(sys.argv[1])
    kept.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for test in (lanes_overlap, a_saturated_bus_is_named):
            print(f"-- {test.__name__}", flush=True)
            here = pathlib.Path(folder) / test.__name__
            here.mkdir()
            try:
                test(here, kept)
            except AssertionError:
                traceback.print_exc()
                failed.append(test.__name__)
    sys.exit(f"failed: {', '.join(failed)}" if failed else None)


main()
