"""A machine that is short of threads, memory or files: feeds wait until there are some again."""

import contextlib
import os
import resource
import shutil
import socket

import pytest

from harness.configs import COPY, IMPATIENT, encoder, looped, one_feed, x264
from harness.preload import preload

MIB = 1 << 20
REMEDY = ": raise TasksMax= or MemoryMax= of the service, or ulimit -u and -v"
LIMIT = ("; if there is enough, it needs more in one piece than input.limits.pixels stands for: raise that if the "
         "input is right")


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
        daemon, "the decoder h264 does not open: threads or memory are short "
        f"(Resource temporarily unavailable){REMEDY}")


def test_a_feed_that_gets_no_thread_is_started_again(framelane, clip):
    with stack_size(256 * MIB):
        config = one_feed(looped(clip, options={"threads": 1}), x264(threads=1))
        daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "running")
    limit_memory(daemon, -400 * MIB)  # the feed's two threads have given back more
    daemon.restart_feed("cam")
    wait_for_shortage_and_recovery(daemon, "does not start: threads or memory are short")


@pytest.fixture
def shortage(tmp_path):
    """(environment that preloads shortage.c, the file that says what is short)"""
    return preload(tmp_path, "shortage")


@pytest.mark.parametrize("name", ["libx264", "libvpx"])
def test_an_encoder_that_gets_no_thread_is_opened_again(framelane, tmp_path, clip, shortage, name):
    """libx264 tells FFmpeg nothing, and libvpx that a value is wrong."""
    environment, file = shortage
    source = tmp_path / "later.mp4"
    input_ = looped(source, options={"threads": 1}, **IMPATIENT)
    daemon = framelane(one_feed(input_, encoder(name, threads=2)), env=environment).wait_ready()
    daemon.wait_state("cam", "backoff")
    file.write_text("threads")
    shutil.copy(clip, tmp_path / "copy.mp4")
    (tmp_path / "copy.mp4").rename(source)
    daemon.wait_log(f"encode main: {name} does not open for 768x576 yuv420p: ")
    metrics = daemon.wait_state("cam", "backoff")
    assert metrics.sum("framelane_feed_restarts_total", feed="cam", reason="memory") >= 1
    assert REMEDY + "; restarting it" in daemon.log()
    file.unlink()
    daemon.wait_state("cam", "running")


def test_a_hardware_encoder_that_is_short_names_the_remedy(framelane, clip, nvenc):
    environment, _ = nvenc
    config = {"device": "cpu", **one_feed(looped(clip, **IMPATIENT), encoder("h264_nvenc"))}
    daemon = framelane(config, env={**environment, "FRAMELANE_TEST_NVENC_SHORT": "1"}).wait_ready()
    daemon.wait_log("encode main: no encoder is available: h264_nvenc does not open here: threads or"
                    " memory are short (")
    metrics = daemon.wait_state("cam", "backoff")
    assert metrics.sum("framelane_feed_restarts_total", feed="cam", reason="memory") >= 1
    assert REMEDY + "; restarting it" in daemon.log()


def test_a_source_that_gets_no_memory_is_opened_again(framelane, tmp_path, shortage):
    environment, file = shortage
    daemon = framelane(one_feed({"url": str(tmp_path / "later.mp4"), **IMPATIENT}, COPY),
                       env=environment).wait_ready()
    daemon.wait_state("cam", "backoff")
    file.write_text("memory")
    daemon.wait_log("feed cam: threads or memory are short (its thread source got no memory)"
                    f"{REMEDY}; restarting it")
    file.unlink()
    daemon.wait_log("cannot open")


@pytest.mark.parametrize("pace, then", [("realtime", "trying again"), ("asap", "restarting it")])
def test_a_source_that_gets_no_memory_to_read_on_goes_on(framelane, clip, shortage, pace, then):
    """Live, as it is at its own pace, it alone is opened again; with a file the feed begins again."""
    environment, file = shortage
    input_ = {"url": str(clip), "loop": True, "pace": pace, **IMPATIENT}
    daemon = framelane(one_feed(input_, x264(threads=1)), env=environment).wait_ready()
    daemon.wait_state("cam", "running")
    file.write_text("reading")
    daemon.wait_log(f"feed cam: cannot read on from {clip}: threads or memory are short (Cannot allocate"
                    f" memory){REMEDY}{LIMIT}; {then}")
    metrics = daemon.wait_state("cam", "backoff")
    restarts = metrics.sum("framelane_feed_restarts_total", feed="cam", reason="memory")
    assert (restarts >= 1) == (pace == "asap")
    file.unlink()
    daemon.wait_state("cam", "running")


@pytest.mark.parametrize("error, words", [
    ("EMFILE", "(Too many open files): raise LimitNOFILE= of the service, or ulimit -n"),
    ("ENFILE", "(Too many open files in system): raise fs.file-max by sysctl"),
], ids=["of the process", "of the system"])
def test_a_source_that_gets_no_file_descriptor_names_the_remedy(framelane, clip, shortage, error, words):
    environment, file = shortage
    file.write_text(error)
    daemon = framelane(one_feed(looped(clip, **IMPATIENT)), env=environment).wait_ready()
    daemon.wait_log(f"feed cam: cannot open {clip}: file descriptors are short {words}; trying again in")
    file.unlink()
    daemon.wait_state("cam", "running")


def test_a_conversion_by_swscale_that_gets_no_memory_is_tried_again(framelane, made, tmp_path,
                                                                    shortage):
    environment, file = shortage
    ten_bit = made("ten-bit.mkv", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10:duration=1",
                   "-pix_fmt", "yuv420p10le", "-c:v", "ffv1")
    file.write_text("scaler")
    daemon = framelane(one_feed(looped(ten_bit, **IMPATIENT)), env=environment).wait_ready()
    daemon.wait_log(f"feed cam: threads or memory are short (swscale got no memory){REMEDY}")
    metrics = daemon.wait_state("cam", "backoff")
    assert metrics.sum("framelane_feed_restarts_total", feed="cam", reason="memory") >= 1
    file.unlink()
    daemon.wait_state("cam", "running")


def test_a_decoder_of_sound_that_gets_no_memory_is_opened_again(framelane, made, clip, shortage):
    """The feed goes on without sound meanwhile."""
    environment, file = shortage
    source = made("sounding.mkv", "-stream_loop", "5", "-i", clip, "-f", "lavfi", "-i",
                  "sine=duration=10", "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "pcm_alaw",
                  "-shortest")
    file.write_text("sound")
    daemon = framelane(one_feed(looped(source), {**x264(threads=1), "audio": {"codec": "aac"}}),
                       env=environment).wait_ready()
    daemon.wait_log(f"threads or memory are short (Cannot allocate memory){REMEDY}); going without, "
                    "trying again in")
    daemon.wait_frames("cam", 5)
    file.unlink()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_audio_packets_out_total", feed="cam") >= 10, "sound")
    assert metrics.sum("framelane_feed_restarts_total", feed="cam") == 0


def test_an_output_that_gets_no_memory_is_down_alone(framelane, clip, shortage):
    environment, file = shortage
    with socket.create_server(("127.0.0.1", 0)) as peer:
        outputs = {"peer": {"url": f"tcp://127.0.0.1:{peer.getsockname()[1]}", "format": "mpegts",
                            "reconnect": {"first": "50ms", "max": "50ms"}},
                   "fine": {"url": "null:"}}
        daemon = framelane(one_feed(looped(clip), x264(threads=1), outputs), env=environment)
        client = peer.accept()[0]
        daemon.wait_ready().wait_state("cam", "running")
        file.write_text("memory")
        client.close()
        daemon.wait_log(f"threads or memory are short (Cannot allocate memory){REMEDY}")
        assert "output peer: cannot write to tcp://127.0.0.1:" in daemon.log()
        daemon.wait_more_frames("cam", 5)
        assert daemon.feed("cam")["outputs"]["fine"]["state"] == "running"
        assert daemon.metrics().sum("framelane_feed_restarts_total") == 0
        file.unlink()
        with peer.accept()[0]:
            daemon.wait_metrics(
                lambda m: m.one("framelane_output_up", feed="cam", output="peer") == 1,
                "the output to be up again")


@pytest.mark.parametrize("command", ["run", "transcode"])
def test_a_start_without_threads_ends_with_one_line(cli, tmp_path, clip, shortage, command):
    environment, file = shortage
    config = tmp_path / "framelane.yaml"
    config.write_text(f"feeds: {{cam: {{input: {{url: '{clip}'}}}}}}\n")
    file.write_text("threads")
    arguments = ["-c", config] if command == "run" else [clip, tmp_path / "out.mkv"]
    done = cli(command, *arguments, env={**os.environ, **environment})
    assert done.returncode == 1, done.stderr
    assert done.stderr == ("framelane: a thread does not start: threads or memory are short "
                           f"(Resource temporarily unavailable){REMEDY}\n")
