"""A machine that is short of threads or memory: feeds wait until there are some again."""

import contextlib
import resource
import shutil

from harness.configs import IMPATIENT, looped, one_feed, x264

MIB = 1 << 20


def limit_memory(daemon, more):
    """The daemon may map this many bytes more than it has now, which may be less than none; None: as many
    as it likes. A thread that is begun maps its stack."""
    limit = resource.RLIM_INFINITY
    if more is not None:
        with open(f"/proc/{daemon.process.pid}/statm", encoding="ascii") as statm:
            limit = int(statm.read().split()[0]) * resource.getpagesize() + more
    resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


@contextlib.contextmanager
def stack_size(size):
    """For the threads of programs that are started inside."""
    before = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (size, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_STACK, before)


def wait_for_shortage_and_recovery(daemon, words):
    daemon.wait_log(words)
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_feed_restarts_total", feed="cam", reason="memory") >= 1,
        "a restart because of memory")
    assert metrics.feed_state("cam") != "failed"
    limit_memory(daemon, None)
    daemon.wait_state("cam", "running")
    assert "check the values" not in daemon.log()


def test_a_decoder_that_gets_no_threads_is_opened_again(framelane, tmp_path, clip):
    source = tmp_path / "later.mp4"
    input_ = looped(source, options={"threads": 64}, **IMPATIENT)
    daemon = framelane(one_feed(input_, x264(threads=1))).wait_ready()
    daemon.wait_state("cam", "backoff")
    limit_memory(daemon, 100 * MIB)
    shutil.copy(clip, tmp_path / "copy.mp4")
    (tmp_path / "copy.mp4").rename(source)
    wait_for_shortage_and_recovery(
        daemon, "the decoder h264 does not open: threads or memory are short")


def test_a_feed_that_gets_no_thread_is_started_again(framelane, clip):
    with stack_size(256 * MIB):
        config = one_feed(looped(clip, options={"threads": 1}), x264(threads=1))
        daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "running")
    limit_memory(daemon, -400 * MIB)  # the feed's two threads have given back more
    daemon.restart_feed("cam")
    wait_for_shortage_and_recovery(daemon, "does not start: threads or memory are short")
