"""Fixtures: the program, a camera, and media to feed it. See CONTRIBUTING.md, "Tests"."""

import fcntl
import os
import pathlib
import subprocess

import pytest

from harness import daemon as daemon_module
from harness import media, media_playlist
from harness.camera import Camera, free_port
from harness.configs import dead_hooks, every_kind_of_feed, raw_input, x264
from harness.daemon import BINARY, ROOT, STAND_IN_GPU, Daemon
from harness.http_camera import FileServer, HostileServer, HttpCamera
from harness.journal import Journal
from harness.producers import CAPTURE, STRICT
from harness.prometheus import Prometheus, shortened_rules
from harness.small_disk import file_system


def pytest_configure(config):
    config.addinivalue_line("markers", "sanitizers: also run under ASan+UBSan and TSan in CI")
    config.addinivalue_line("markers", "bench: needs framelane-bench, which is not built for TSan")
    config.addinivalue_line("markers", "asan: also run under ASan+UBSan in CI; its threads are "
                            "those of tests marked sanitizers")
    # Hides a GPU, so that the tests do the same on every machine.
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    assert BINARY.exists(), f"{BINARY} is not built; run scripts/test, or set FRAMELANE_BINARY"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    setattr(item, f"report_{outcome.get_result().when}", outcome.get_result())


@pytest.fixture(autouse=True)
def strict_playlists(tmp_path):
    """Whatever playlist a test leaves is held against RFC 8216."""
    yield
    for path in tmp_path.rglob("*.m3u8"):
        reader = media_playlist.read_master if media_playlist.is_master(path) else media_playlist.read
        reader(path)


@pytest.fixture
def framelane(tmp_path, request):
    """Starts daemons: framelane(config, **keywords) -> Daemon. Those that still run at the end of
    the test are stopped, with the checks of Daemon.stop. A failing test shows their logs."""
    started = []

    def start(config, folder=None, **keywords):
        folder = folder or tmp_path
        folder.mkdir(exist_ok=True)
        daemon = Daemon(folder, config, **keywords)
        started.append(daemon)
        return daemon

    yield start
    failed = getattr(request.node, "report_call", None) is None or request.node.report_call.failed
    try:
        for daemon in started:
            if failed:
                print(f"--- {daemon.log_path} (exit status {daemon.process.poll()})")
                print(daemon.log())
            elif daemon.process.poll() is None:
                daemon.metrics()
                daemon.stop()
            else:
                daemon.check_log()
    finally:
        for daemon in started:
            daemon.kill()


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "journal", tmp_path / "framelane.log")
    if subprocess.run([*made.wrapper, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a file system needs root")
    yield made
    made.close()


@pytest.fixture
def with_gpu(framelane, clip, bgra, tmp_path):
    """A daemon with a GPU, which a stand-in for CUDA's runtime plays, and with every kind of series."""
    if not STAND_IN_GPU.exists():
        pytest.skip("needs the stand-in runtime")
    feeds = every_kind_of_feed(clip, tmp_path)
    feeds["raw"] = {"input": raw_input(bgra, "bgra", "64x48", loop=True, pace="realtime"), "encodes": {"main": x264()},
                    "outputs": {"out": {"url": "null:"}}}
    daemon = framelane({"device": "cuda", "feeds": feeds, "hooks": dead_hooks()}, binary=STAND_IN_GPU, port=free_port()).wait_ready()
    for feed in ("live", "raw"):
        daemon.wait_frames(feed, 10)
    return daemon


@pytest.fixture
def prometheus(tmp_path):
    """Starts a Prometheus with docker/prometheus/rules.yml that scrapes this daemon five times a second:
    prometheus(daemon) -> Prometheus. Alerts wait a second where they would wait minutes."""
    started = []

    def start(daemon):
        (tmp_path / "rules.yml").write_text(shortened_rules())
        started.append(Prometheus(tmp_path, {
            "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"}, "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "framelane",
                                "static_configs": [{"targets": [f"127.0.0.1:{daemon.port}"]}]}]}))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def camera(tmp_path, long_clip):
    """Makes cameras: camera(**keywords) -> Camera. They end with the test."""
    cameras = []

    def make(clip=None, **keywords):
        cameras.append(Camera(tmp_path, clip or long_clip, **keywords))
        return cameras[-1]

    yield make
    for made in cameras:
        made.kill()


@pytest.fixture
def http_camera():
    """Makes HTTP cameras: http_camera(body, content_type, **keywords) -> HttpCamera."""
    cameras = []

    def make(*arguments, **keywords):
        cameras.append(HttpCamera(*arguments, **keywords))
        return cameras[-1]

    yield make
    for made in cameras:
        made.close()


@pytest.fixture
def file_server(tmp_path):
    """A server of the files in tmp_path: file_server.url("name")."""
    server = FileServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def hostile():
    """An HTTP server that means no good: hostile.answers["/live.m3u8"] = ..."""
    server = HostileServer()
    yield server
    server.close()


@pytest.fixture
def nvenc(tmp_path):
    """(environment with a stand-in for NVENC, its log: a line with time and flags for each frame)"""
    folder, log = tmp_path / "nvenc", tmp_path / "nvenc.log"
    folder.mkdir()
    libraries = [folder / "libcuda.so.1", folder / "libnvidia-encode.so.1"]
    source = pathlib.Path(__file__).parent / "harness" / "nvenc.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", libraries[0], source], check=True)
    libraries[1].symlink_to(libraries[0])
    return {"LD_LIBRARY_PATH": str(folder), "FRAMELANE_TEST_NVENC": str(log)}, log


@pytest.fixture
def start():
    """Starts programs: start(command, argument, ...) -> subprocess.Popen. Those that still run at the end of the
    test are killed."""
    started = []

    def run(*command, **keywords):
        started.append(subprocess.Popen(list(map(str, command)), **keywords))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture(scope="session")
def capture_file(tmp_path_factory):
    """harness/capture_file.c, compiled as a program that has copied capture/'s two files would be."""
    program = tmp_path_factory.mktemp("capture") / "capture_file"
    source = pathlib.Path(__file__).parent / "harness" / "capture_file.c"
    subprocess.run(["cc", *STRICT, f"-I{CAPTURE}", "-o", program, source,
                    CAPTURE / "framelane_capture.c"], check=True)
    return program


@pytest.fixture
def cli():
    """Runs a framelane command until it ends: cli("check", "-c", path)."""
    return daemon_module.run


@pytest.fixture(scope="session")
def clip():
    """The real clip: H.264 with B-frames, 768x576, 10 frames/s, 42 frames, one keyframe."""
    return ROOT / "tests" / "data" / "street_h264.mp4"


@pytest.fixture
def small_disk(tmp_path):
    """The folder of a file system of a megabyte."""
    with file_system(tmp_path / "disk", 1_000_000) as folder:
        yield folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """made(name, *ffmpeg_arguments): a file that ffmpeg makes once for all tests of all workers."""
    folder = pathlib.Path(tmp_path_factory.getbasetemp())
    # With xdist every worker has its own folder inside a common one.
    folder = (folder.parent if "popen-" in folder.name else folder) / "made"
    folder.mkdir(exist_ok=True)

    def make(name, *arguments):
        path = folder / name
        with open(folder / f"{name}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                partial = folder / f"partial.{name}"
                media.ffmpeg(*arguments, partial)
                partial.rename(path)
        return path

    return make


@pytest.fixture(scope="session")
def long_clip(made, clip):
    """The clip many times in a row, about 7 minutes: a camera can play it for a whole test."""
    return made("long.mov", "-stream_loop", "99", "-i", clip, "-c", "copy")


@pytest.fixture(scope="session")
def bgra(made):
    """64x48 BGRA, 50 frames."""
    return made("bgra.raw", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=2",
                "-pix_fmt", "bgra", "-f", "rawvideo")


@pytest.fixture(scope="session")
def camera_clip(made, clip):
    """Real footage as a fast camera sends it: 25 frames/s, a keyframe a second, B-frames, 100 s."""
    part = made("camera-20s.mov", "-stream_loop", "-1", "-i", clip, "-t", "20", "-vf",
                "scale=320:240,fps=25", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "2",
                "-g", "25", "-keyint_min", "25", "-sc_threshold", "0")
    return made("camera.mov", "-stream_loop", "4", "-i", part, "-c", "copy")


@pytest.fixture(scope="session")
def cif_clip(made, camera_clip):
    """What the camera of camera_clip sends in another size, one that H.263 knows; 20 s."""
    return made("camera-cif.mov", "-i", camera_clip, "-t", "20", "-vf", "scale=352:288,setsar=1", "-c:v",
                "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25")


@pytest.fixture(scope="session")
def hevc_clip(made, camera_clip):
    """What the camera of camera_clip sends as HEVC, 20 s."""
    part = made("camera-hevc-4s.mov", "-i", camera_clip, "-t", "4", "-c:v", "libx265", "-preset",
                "ultrafast", "-x265-params", "log-level=error:bframes=3:keyint=25:scenecut=0",
                "-tag:v", "hvc1")
    return made("camera-hevc.mov", "-stream_loop", "4", "-i", part, "-c", "copy")


@pytest.fixture(scope="session")
def keyed_clip(made, clip):
    """The clip with a keyframe every second."""
    return made("keyed.mp4", "-i", clip, "-c:v", "libx264", "-g", "10", "-bf", "2",
                "-sc_threshold", "0")


@pytest.fixture(scope="session")
def mjpeg_avi(made, clip):
    """20 frames of MJPEG, full range, as cheap cameras send it."""
    return made("clip.avi", "-i", clip, "-t", "2", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p")
