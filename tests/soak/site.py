"""The installation that has the bad week: cameras, peers, disks, and one daemon for them all."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import uuid

from harness.camera import Camera, free_port
from harness.configs import COPY, x264
from harness.daemon import ROOT, WITHOUT_PRIVILEGES, Daemon
from harness.producers import EXAMPLE
from soak.clips import RAW_FRAME, RAW_SIZE, Clips
from soak.sources import FifoWriter, FolderServer, MjpegCamera, Program, TcpPeer

_HANG = ROOT / "tests" / "integration" / "harness" / "hang.c"
STOP_LIMIT = 10  # seconds, as docs/operations.md promises
SEGMENT = 10
GOP = 2
KEEP = 4_000_000
MIN_FREE = 1_000_000
IMPATIENT = {"timeout": "2s", "reconnect": {"first": "200ms", "max": "2s"}}


def _output(url, **keys):
    return {"url": str(url), "timeout": "3s", "reconnect": {"first": "200ms", "max": "2s"}, **keys}


class Site:
    def __init__(self, folder):
        self.folder = folder
        self.scratch = folder / "scratch"
        self.recordings = folder / "recordings"
        self.live = folder / "live"
        self.small = folder / "small"
        for path in (self.scratch, self.recordings, self.live, self.small):
            path.mkdir()
        # A disk of its own needs the right to mount; without it no scene fills a disk.
        self.small_is_a_disk = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=12m", "none", self.small],
            stderr=subprocess.DEVNULL, check=False).returncode == 0
        self.clips = Clips(folder.parent / "clips")
        self.port = free_port()
        self.daemon = None
        self.lives = 0
        self.away = False  # a scene has stopped or frozen the daemon, or keeps it from answering
        self.playlists_in_doubt = False  # a scene has taken away or damaged some
        self.is_slow = False  # a scene has held the daemon up, so that frames are dropped
        self.cut = set()  # recordings that a kill has cut
        self.stretched = set()  # recordings that were open while a scene held the daemon up
        self.frozen = []  # when the daemon was frozen: (from, until), wall clock
        self.hang_file = folder / "hang"
        self._hang_library = self._make_hang_library()
        self._make_secrets()
        self._start_sources()
        self._start_peers()

    def _make_hang_library(self):
        library = self.folder / "hang.so"
        done = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, _HANG, "-ldl"], check=False)
        return library if done.returncode == 0 else None

    def _make_secrets(self):
        self.password_file = self.folder / "gate-password"
        (self.folder / "camera-key").write_text("k3y-0f-jpeg\n")
        (self.folder / "stream-key").write_text("str3am-k3y\n")
        self.secrets = ["k3y-0f-jpeg", "str3am-k3y", "str3am-1d"]
        self.set_password("s3cr3t-pa$s")

    def set_password(self, password):
        self.password_file.write_text(password + "\n")
        self.secrets += [password, password.replace("$", "%24")]

    def _start_sources(self):
        clips, here = self.clips, "127.0.0.1"
        self.gate = Camera(self.folder, clips.camera, audio="alaw", auth="digest")
        self.yard = Camera(self.folder, clips.camera, audio="alaw")
        self.clock = Camera(self.folder, clips.clock, clock=0)
        self.jpeg = MjpegCamera(clips.pictures)
        self.fifo = FifoWriter(self.folder / "capture.fifo", RAW_FRAME)
        self.shm_socket = self.folder / "capture.sock"
        self.shm = Program(EXAMPLE, self.shm_socket, *RAW_SIZE.split("x"), 10)
        self.udp_port, self.wire_port, self.rtp_port = (free_port() & ~1 for _ in range(3))
        send = ["ffmpeg", "-v", "quiet", "-re", "-stream_loop", "-1", "-i", clips.camera, "-an",
                "-c", "copy"]
        self.udp = Program(*send, "-f", "mpegts", f"udp://{here}:{self.udp_port}?pkt_size=1316")
        self.wire = Program(*send, "-f", "mpegts", f"tcp://{here}:{self.wire_port}?listen=1")
        self.sdp = self.folder / "camera.sdp"
        self.rtp = Program(*send, "-f", "rtp", f"rtp://{here}:{self.rtp_port}",
                           "-sdp_file", self.sdp)
        self.loop_clip = pathlib.Path(f"/dev/shm/framelane-{uuid.uuid4().hex}.mp4")
        shutil.copy(clips.street, self.loop_clip)
        self.web = FolderServer(self.live)

    def _start_peers(self):
        self.rtmp_port, self.srt_port = free_port(), free_port()
        self.push = Program("ffmpeg", "-v", "quiet", "-listen", 1, "-i",
                            f"rtmp://127.0.0.1:{self.rtmp_port}/live", "-c", "copy",
                            "-f", "null", "-")
        self.srt = Program("ffmpeg", "-v", "quiet", "-i",
                           f"srt://127.0.0.1:{self.srt_port}?mode=listener", "-c", "copy",
                           "-f", "null", "-")
        self.peer = TcpPeer()

    def _recording(self, name, suffix, **keys):
        return _output(self.recordings / name / f"%s.{suffix}", segment=f"{SEGMENT}s", **keys)

    def config(self):
        here = "127.0.0.1"
        live = x264(gop=f"{GOP}s")
        sound, heard = ({"video": "copy", "audio": audio} for audio in ("copy", {"codec": "aac"}))
        secret = "${file:" + str(self.folder) + "/%s}"
        hls = {"hls_time": GOP, "hls_list_size": 4}
        feeds = {
            "gate": {
                "input": {"url": f"rtsp://{Camera.USER}:{secret % 'gate-password'}@{here}:"
                                 f"{self.gate.port}/stream",
                          "options": {"rtsp_transport": "tcp"}},
                "encodes": {"main": sound, "live": live},
                "outputs": {
                    "record": self._recording("gate", "mkv"),
                    "hls": _output(self.live / "gate" / "index.m3u8", **{"from": "live"},
                                   options=hls)}},
            "yard": {
                "input": {"url": self.yard.url},
                "encodes": {"main": heard, "live": live},
                "outputs": {
                    "record": self._recording("yard", "mp4"),
                    "hls": _output(self.live / "yard" / "index.m3u8",
                                   options={**hls, "hls_segment_type": "fmp4"}),
                    "viewing": self._recording("yard-viewing", "mp4", **{"from": "live"}),
                    "push": _output(f"rtmp://{here}:{self.rtmp_port}/live/"
                                    f"{secret % 'stream-key'}")}},
            "clock": {
                "input": {"url": self.clock.url, "options": {"rtsp_transport": "tcp"}},
                "on_gap": {"split_after": "1s"},
                "encodes": {"main": COPY, "live": live},
                "outputs": {
                    "record": self._recording("clock", "mkv"),
                    "hls": _output(self.live / "clock" / "index.m3u8", **{"from": "live"},
                                   options={**hls, "hls_flags": "+program_date_time"})}},
            "jpeg": {
                "input": {"url": self.jpeg.url,
                          "options": {"headers": f"X-Camera-Key: {secret % 'camera-key'}\r\n"}},
                "encodes": {"main": live, "copy": COPY},
                "outputs": {"record": self._recording("jpeg", "mp4"),
                            "copy": self._recording("jpeg-copy", "mkv", **{"from": "copy"})}},
            "raw": {
                "analyse": True,
                "input": {"url": str(self.fifo.path), "format": "rawvideo", "pixel_format": "bgra",
                          "size": RAW_SIZE, "rate": 10, "timestamps": "arrival"},
                "encodes": {"main": x264(gop=f"{GOP}s", tune="zerolatency")
                            | {"convert": {"format": "yuv420p"}}},
                "outputs": {"record": self._recording("raw", "mp4"),
                            "peer": _output(f"tcp://{here}:{self.peer.port}", format="mpegts")}},
            "shm": {
                "input": {"url": f"shm:{self.shm_socket}", "format": "rawvideo",
                          "pixel_format": "bgra", "size": RAW_SIZE, "rate": 10,
                          "timestamps": "producer"},
                "encodes": {"main": x264(gop=f"{GOP}s", tune="zerolatency")
                            | {"convert": {"format": "yuv420p"}}},
                "outputs": {"record": self._recording("shm", "mp4")}},
            "wire": {
                "input": {"url": f"tcp://{here}:{self.wire_port}", "format": "mpegts"},
                "encodes": {"main": COPY},
                "outputs": {"record": self._recording("wire", "ts"),
                            "srt": _output(f"srt://{here}:{self.srt_port}?streamid=str3am-1d",
                                           format="mpegts")}},
            "udp": {
                "input": {"url": f"udp://{here}:{self.udp_port}", "format": "mpegts"},
                "encodes": {"main": live},
                "outputs": {"record": self._recording("udp", "mkv"),
                            "out": _output(f"udp://{here}:{free_port()}?pkt_size=1316",
                                           format="mpegts")}},
            "rtp": {
                "input": {"url": str(self.sdp), "options": {"protocol_whitelist": "file,udp,rtp"}},
                "encodes": {"main": COPY},
                "outputs": {"record": self._recording("rtp", "mkv")}},
            "loop": {
                "input": {"url": str(self.loop_clip), "loop": True, "pace": "realtime"},
                "encodes": {"main": x264(gop="1s", crf=14)},
                "outputs": {
                    "kept": _output(self.small / "kept" / "%s.ts", segment="2s",
                                    keep={"size": KEEP}),
                    "clusters": _output(self.small / "clusters" / "%s.mkv", segment="2s",
                                        keep={"size": KEEP // 4, "min_free": MIN_FREE}),
                    "hls": _output(self.small / "hls" / "index.m3u8", options=hls)}},
            "relay": {
                "input": {"url": self.web.url("gate/index.m3u8"), "timeout": "8s"},
                "encodes": {"main": COPY},
                "outputs": {"record": self._recording("relay", "ts")}},
        }
        for feed in feeds.values():
            feed["input"] = {**IMPATIENT, **feed["input"]}
        return {"feeds": feeds}

    # The daemon

    def start(self, level="info", form="text"):
        """Each life of the daemon has a log of its own."""
        if (self.folder / "framelane.log").exists():
            os.rename(self.folder / "framelane.log", self.folder / f"framelane.{self.lives}.log")
        self.lives += 1
        environment = {"CUDA_VISIBLE_DEVICES": ""}
        if self._hang_library:
            environment |= {"LD_PRELOAD": str(self._hang_library),
                            "FRAMELANE_TEST_HANG": str(self.hang_file)}
        config = {"log": {"level": level, "format": form}, **self.config()}
        self.daemon = Daemon(self.folder, config, env=environment, port=self.port,
                             wrapper=WITHOUT_PRIVILEGES)
        self.daemon.level, self.daemon.form = level, form
        self.daemon.playlists = []  # scenes damage them; Watch looks at them when none does
        return self.daemon

    def stop(self, sign=signal.SIGTERM):
        """Stops the daemon, and checks what a stop leaves."""
        started = time.monotonic()
        self.daemon.stop(deadline=STOP_LIMIT + 10, sign=sign)
        seconds = time.monotonic() - started
        assert seconds < STOP_LIMIT + 1, f"the stop took {seconds:.1f} s"
        left = [path for path in self.part_files() if path.parent.stat().st_mode & 0o200]
        assert not left, f"a clean stop left {', '.join(map(str, left))}"

    def kill(self):
        """As a crash or the kernel would end it."""
        self.daemon.kill()
        self.cut |= {path.with_suffix("") for path in self.part_files()}

    def hold_up(self):
        self.is_slow = True
        self.stretched |= {path.with_suffix("") for path in self.part_files()}

    @contextlib.contextmanager
    def freeze(self):
        """Meanwhile the daemon does not run, and sees everything late."""
        begin = time.time()
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
            self.frozen.append((begin, time.time()))

    def part_files(self):
        return sorted([*self.recordings.rglob("*.part"), *self.small.rglob("*.part")])

    def process_numbers(self):
        """(MiB of memory, descriptors, threads)"""
        process = pathlib.Path(f"/proc/{self.daemon.process.pid}")
        pages = int((process / "statm").read_text().split()[1])
        return (pages * os.sysconf("SC_PAGESIZE") >> 20, len(os.listdir(process / "fd")),
                len(os.listdir(process / "task")))

    def close(self):
        if self.daemon and self.daemon.process.poll() is None:
            self.daemon.kill()
        for source in (self.gate, self.yard, self.clock, self.udp, self.wire, self.rtp, self.shm,
                       self.push, self.srt):
            source.kill()
        self.jpeg.close()
        self.web.close()
        self.loop_clip.unlink(missing_ok=True)
        if self.small_is_a_disk:
            subprocess.run(["umount", "--lazy", self.small], check=False)

    def describe(self):
        """The API's answer, for the evidence."""
        try:
            return json.dumps(self.daemon.api("/api/v1/feeds"), indent=1)
        except (OSError, AssertionError) as error:
            return f"no answer: {error}"
