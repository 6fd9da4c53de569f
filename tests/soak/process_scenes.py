"""The daemon itself is stopped, killed, frozen, or kept short of what it needs."""

import contextlib
import http.client
import resource
import signal
import time

from harness import daemon as daemon_module
from harness.waiting import wait_until
from soak.scene import scene

MIB = 1 << 20


@contextlib.contextmanager
def _away(site):
    """Nobody asks the daemon anything meanwhile."""
    site.away = True
    try:
        yield
    finally:
        site.away = False


def _log_settings(dice):
    level = dice.choice(["trace", "debug", "info", "info", "warn", "error"])
    return level, dice.choice(["text", "json"])


@scene("process", weight=0.25)
def stopped_and_started(site, dice):
    sign, (level, form) = dice.choice([signal.SIGTERM, signal.SIGINT]), _log_settings(dice)
    with _away(site):
        site.stop(sign)
        time.sleep(dice.uniform(0, 2))
        site.start(level, form)
        site.daemon.wait_ready(deadline=30)
    yield f"{sign.name}, then log {level} {form}"


@scene("process", weight=0.25)
def killed_and_started(site, dice):
    level, form = _log_settings(dice)
    with _away(site):
        site.kill()
        time.sleep(dice.uniform(0, 2))
        site.start(level, form)
        site.daemon.wait_ready(deadline=30)
    yield f"log {level} {form}"


def _is_handled(process, sign):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        masks = [int(line.split()[1], 16) for line in status
                 if line.startswith(("SigBlk:", "SigIgn:", "SigCgt:"))]
    return any(mask >> (sign - 1) & 1 for mask in masks)


@scene("process", weight=0.25)
def stopped_as_it_starts(site, dice):
    """A stop is clean in every moment: of the start, while sources connect, while encoders open."""
    moments = [dice.choice([0.1, 0.2, 0.3, 0.5, 1, 3]) * dice.uniform(0.5, 1) for _ in range(4)]
    with _away(site):
        site.stop()
        for moment in moments:
            site.start()
            time.sleep(moment)
            sign = dice.choice([signal.SIGTERM, signal.SIGINT])
            if _is_handled(site.daemon.process, sign):
                site.stop(sign)
            else:  # before main() the default action is all there is
                site.daemon.process.send_signal(sign)
                status = site.daemon.wait_exit()
                assert status in (0, -sign), f"exit status {status} after {sign.name}"
        site.start()
        site.daemon.wait_ready(deadline=30)
    yield ", ".join(f"after {moment:.3f} s" for moment in moments)


@scene("process", weight=0.1)
def ended_by_two_signals(site, dice):
    with _away(site):
        site.daemon.process.send_signal(signal.SIGTERM)
        time.sleep(dice.choice([0, 0.001, 0.01, 0.1]))
        site.daemon.process.send_signal(signal.SIGINT)
        status = site.daemon.wait_exit(5)
        site.cut |= {path.with_suffix("") for path in site.part_files()}
        site.start()
        site.daemon.wait_ready(deadline=30)
    assert status in (0, 128 + signal.SIGINT), f"two signals: exit status {status}"
    yield f"exit status {status}"


@scene("process")
def frozen(site, dice):
    with _away(site):
        with site.freeze():
            time.sleep(dice.uniform(0.5, 7))
        # Until its loop has turned, a probe rightly says that it does not.
        wait_until(lambda: site.daemon.request("GET", "/healthz")[0] == 200, "its health", 2)
    yield ""


@scene("process")
def signals_without_a_meaning(site, dice):
    signs = [dice.choice([signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE,
                          signal.SIGWINCH, signal.SIGCONT, signal.SIGURG]) for _ in range(6)]
    for sign in signs:
        site.daemon.process.send_signal(sign)
        time.sleep(0.05)
    yield " ".join(sign.name for sign in signs)


@contextlib.contextmanager
def _limit(site, what, value):
    """Meanwhile the daemon's soft limit, which can be raised again, is `value`."""
    pid = site.daemon.process.pid
    _, hard = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (value, hard))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended, which is another's fault
            resource.prlimit(pid, what, (hard, hard))


def _restart(site, feeds):
    """As far as a daemon that is short of everything answers."""
    for feed in feeds:
        with contextlib.suppress(OSError, AssertionError, http.client.HTTPException):
            site.daemon.restart_feed(feed)


@scene("process", "gate", "yard", "raw", "udp", "jpeg", weight=0.7)
def memory_is_short(site, dice):
    """Little more can be mapped, or nothing, while feeds begin anew; threads need stacks too."""
    feeds = dice.sample(["gate", "yard", "raw", "udp", "jpeg"], dice.randint(1, 4))
    more = dice.choice([-400, -100, 0, 1, 8, 30]) * MIB
    with open(f"/proc/{site.daemon.process.pid}/statm", encoding="ascii") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    with _away(site), _limit(site, resource.RLIMIT_AS, mapped + more):
        _restart(site, feeds)
        time.sleep(dice.uniform(1, 4))
    yield f"{more // MIB} MiB more for {' '.join(feeds)}"


@scene("process", "gate", "yard", "wire", "jpeg", weight=0.7)
def descriptors_are_short(site, dice):
    feeds = dice.sample(["gate", "yard", "wire", "jpeg"], dice.randint(1, 4))
    more = dice.choice([-20, -1, 0, 1, 3, 6])
    limit = max(10, site.process_numbers()[1] + more)
    with _away(site), _limit(site, resource.RLIMIT_NOFILE, limit):
        _restart(site, feeds)
        time.sleep(dice.uniform(1, 4))
    yield f"{more} more for {' '.join(feeds)}"


@scene("process", weight=0.7)
def files_are_limited(site, dice):
    """No file may grow beyond RLIMIT_FSIZE: recordings are cut, and nothing else happens."""
    limit = dice.choice([20_000, 200_000, 1_000_000])
    with _limit(site, resource.RLIMIT_FSIZE, limit):
        yield f"to {limit} bytes"


@scene("process", "peer", "push", weight=0.25)
def calls_hang(site, dice):
    """Encoders, and writes to TCP peers, do not return until the scene ends. A stop beside it is
    on time too."""
    seconds = dice.uniform(1, 25)
    stop = dice.random() < 0.3
    site.hang_file.touch()
    site.hold_up()
    try:
        with _away(site):
            time.sleep(seconds)
            if stop:
                started = time.monotonic()
                site.daemon.process.send_signal(signal.SIGTERM)
                status = site.daemon.wait_exit(30)
                took = time.monotonic() - started
                site.cut |= {path.with_suffix("") for path in site.part_files()}
                site.hang_file.unlink()
                site.start()
                site.daemon.wait_ready(deadline=30)
                assert status == 0 and took < 11, f"exit status {status}, {took:.1f} s after SIGTERM"
    finally:
        site.hang_file.unlink(missing_ok=True)
        site.hang_file.with_suffix(".reached").unlink(missing_ok=True)
    yield f"for {seconds:.0f} s{', with a stop' if stop else ''}"


@scene("process", weight=0.5)
def a_second_daemon(site, dice):
    """Started by mistake with the same configuration: it ends at once, and harms nothing."""
    before = set(site.part_files())
    done = daemon_module.run("run", "-c", site.daemon.config_path, timeout=20)
    assert done.returncode == 1, f"exit status {done.returncode} of a second daemon: {done.stderr}"
    renamed = [path for path in before if path.with_suffix("").exists() and path.exists()]
    assert not renamed, f"a second daemon touched {renamed}"
    yield ""


@scene("gate", "yard", "clock", "jpeg", "raw", "udp", "wire", "rtp")
def feeds_are_restarted(site, dice):
    for _ in range(dice.randint(1, 12)):
        site.daemon.restart_feed(dice.choice(["gate", "yard", "clock", "jpeg", "raw", "udp", "wire",
                                              "rtp", "loop", "relay"]))
        time.sleep(dice.choice([0, 0.05, 0.5]))
    yield ""
