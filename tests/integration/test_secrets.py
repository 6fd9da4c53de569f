"""Canaries: secrets that are planted wherever one may stand, and looked for wherever something is shown."""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import random
import socketserver
import string
import threading
import urllib.parse

import pytest

from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, encoder, looped, one_feed, raw_input, x264
from harness.daemon import BINARY
from harness.events import Events
from harness.waiting import wait_until

WINDOW = 7  # so many characters of a canary in a row are a leak, wherever it was cut


class Canaries:
    """Makes secrets, and finds them in a text."""

    def __init__(self, folder):
        self.folder = folder
        self._secrets = {}
        folder.mkdir()

    def plant(self, place, marks="", digits=string.ascii_lowercase + string.digits, length=20):
        """A secret for this place, with `marks` in its middle."""
        assert place not in self._secrets
        letters = random.Random(place).choices(digits, k=length)
        self._secrets[place] = "".join([*letters[:length // 2], marks, *letters[length // 2:]])
        return self._secrets[place]

    def file(self, place, marks=""):
        """${file:…} of such a secret."""
        (self.folder / place).write_text(self.plant(place, marks) + "\n")
        return "${file:%s}" % place

    def basic(self, place, user, password):
        """Looks for what Basic authentication sends, too."""
        self._secrets[place] = base64.b64encode(f"{user}:{password}".encode()).decode().rstrip("=")

    def __getitem__(self, place):
        return self._secrets[place]

    def seen_in(self, text):
        """The places whose secrets are in the text, whole or in part, plain or percent-encoded."""
        texts = text, urllib.parse.unquote(text)
        return {place for place, secret in self._secrets.items()
                for at in range(len(secret) - WINDOW + 1)
                if any(secret[at:at + WINDOW] in one for one in texts)}

    def assert_unseen(self, shown):
        """`shown`: texts by what shows them."""
        for where, text in shown.items():
            seen = self.seen_in(text)
            assert not seen, f"{where} shows {seen}: " + next(
                (line for line in text.splitlines() if self.seen_in(line)), "")


@pytest.fixture
def canaries(tmp_path):
    made = Canaries(tmp_path / "credentials")
    # What finds nothing proves nothing.
    secret = made.plant("of this fixture", "@/")
    for text in (secret, urllib.parse.quote(secret, safe=""), f"…{secret[:WINDOW]}", secret[-WINDOW:]):
        assert made.seen_in(text) == {"of this fixture"}
    return made


class _AsksForLogin(socketserver.StreamRequestHandler):
    """Answers every request of RTSP and HTTP with 401: for Digest, then for Basic, in turn. A client that tries to
    log in is left after that."""

    def handle(self):
        for scheme in itertools.cycle(['Digest realm="cam", nonce="0a1b"', 'Basic realm="cam"']):
            lines = []
            with contextlib.suppress(ConnectionError):
                while (line := self.rfile.readline()).strip():
                    lines.append(line.decode(errors="replace"))
            if not lines or any("uthorization: " in line for line in lines):
                return
            sequence = next((line for line in lines if line.lower().startswith("cseq")), "")
            self.wfile.write(f"{lines[0].split()[-1]} 401 Unauthorized\r\n{sequence}"
                             f"WWW-Authenticate: {scheme}\r\nContent-Length: 0\r\n\r\n".encode())


@pytest.fixture
def login():
    """The port of a server that asks for a login and never accepts one."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _AsksForLogin) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def faulty_inputs(canaries, login, hostile, clip):
    """Inputs that fail, each in another way, each with secrets; and the environment that they need."""
    here = f"127.0.0.1:{free_port()}"  # where nobody listens
    user, password = canaries.file("user", "@:"), canaries.file("password", "@:/?#%")
    typed = canaries.plant("typed-password")
    canaries.basic("basic", "viewer", typed)
    environment = {"CREDENTIALS_DIRECTORY": str(canaries.folder), "CAMERA_TOKEN": canaries.plant("path-env")}
    segments = f"#EXTINF:2,\nfile:///etc/passwd\n#EXTINF:2,\nhttp://{here}/1.ts\n#EXT-X-ENDLIST\n"
    playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n%s" + segments
    path = canaries.file("path-of-playlist")
    hostile.answers[f"/{canaries['path-of-playlist']}/a.m3u8"] = playlist % ""
    hostile.answers["/key.m3u8"] = playlist % (
        f'#EXT-X-KEY:METHOD=AES-128,URI="http://{here}/key?token={canaries.plant("key-url")}"\n')
    hostile.moved["/moved"] = f"rtsp://viewer:{canaries.plant('redirect')}@{here}/"
    return environment, {
        "rtsp-refused": {"url": f"rtsp://{user}:{password}@{here}/stream?n=1"},
        "rtsp-401": {"url": f"rtsp://{user}:{password}@127.0.0.1:{login}/stream",
                     "options": {"rtsp_transport": "tcp"}},
        "rtsp-typed": {"url": f"rtsp://viewer:{typed}@127.0.0.1:{login}/stream"},
        "http-401": {"url": f"http://viewer:{typed}@127.0.0.1:{login}/video"},
        "query": {"url": f"http://{here}/video?user=a&password={canaries.plant('query-password')}"
                         f"&token={canaries.file('query-token')}&n={canaries.file('query-other')}"},
        "path": {"url": f"{hostile.url('')}/live/{canaries.file('path')}/404.m3u8"},
        "path-env": {"url": f"{hostile.url('')}/live/${{CAMERA_TOKEN}}/404.m3u8"},
        "default": {"url": f"{hostile.url('')}/${{CAMERA_KEY:-{canaries.plant('default')}}}/404.ts"},
        "playlist": {"url": f"{hostile.url('')}/{path}/a.m3u8"},
        "key": {"url": hostile.url("/key.m3u8"), "options": {"allowed_extensions": "ALL"}},
        "redirect": {"url": hostile.url("/moved")},
        "headers": {"url": f"http://{here}/video", "options": {
            "headers": f"Authorization: Bearer {canaries.plant('authorization')}\r\n"
                       f"X-Camera: {canaries.plant('header')}\r\nX-Other: {canaries.file('header-file')}\r\n",
            "cookies": f"session={canaries.plant('cookie')}; path=/; domain=127.0.0.1;",
            "http_proxy": f"http://u:{canaries.plant('proxy')}@{here}/"}},
        "srt": {"url": f"srt://{here}?passphrase={canaries.plant('passphrase')}"
                       f"&streamid={canaries.plant('streamid')}"},
        "srt-options": {"url": f"srt://{here}", "options": {
            "passphrase": canaries.file("passphrase-file"), "streamid": canaries.plant("streamid-option")}},
        "rtmp": {"url": f"rtmp://{here}/live/{canaries.plant('stream-key')}"},
        "rtmp-options": {"url": f"rtmp://{here}/live", "options": {
            "rtmp_playpath": canaries.plant("playpath"), "rtmp_conn": f"S:{canaries.plant('rtmp-conn')}",
            "rtmp_app": f"live?auth={canaries.plant('app')}"}},
        "decryption": {"url": str(clip), "options": {
            "decryption_key": canaries.plant("decryption-key", digits="0123456789abcdef", length=31)}},
        "unused-option": {"url": str(clip), "options": {"rtsp_flags": canaries.file("unused-option")}},
        "wrong-option": {"url": str(clip), "options": {"probesize": canaries.file("wrong-option")}},
        "name": {"url": f"rtsp://{canaries.file('name')}.invalid/"},
        "missing": {"url": f"/nowhere/{canaries.file('missing')}.mp4"},
        "fifo": raw_input(f"/nowhere/{canaries.file('fifo')}.fifo", "bgra", "64x48"),
        "shm": raw_input(f"shm:/nowhere/{canaries.file('shm')}", "bgra", "64x48"),
        "lavfi": {"url": f"lavfi:movie={canaries.file('lavfi')}.mp4"},
    }


def faulty_outputs(canaries, login, tmp_path):
    here = f"127.0.0.1:{free_port()}"
    ts = {"format": "mpegts", **IMPATIENT}
    outputs = {
        "rtmp": {"url": f"rtmp://{here}/live/{canaries.file('out-key')}", "format": "flv", **IMPATIENT},
        "srt": {"url": f"srt://{here}?passphrase={canaries.file('out-passphrase')}", **ts},
        "http": {"url": f"http://viewer:{canaries.plant('out-password')}@127.0.0.1:{login}/push", **ts,
                 "options": {"headers": f"X-Push: {canaries.plant('out-header')}\r\n"}},
        "rtsp": {"url": f"rtsp://u:{canaries.file('out-rtsp')}@127.0.0.1:{login}/push", **IMPATIENT},
        "tcp": {"url": f"tcp://{here}?token={canaries.plant('out-token')}", **ts},
        "folder": {"url": f"/proc/{canaries.file('out-folder')}/a.mkv", **IMPATIENT},
        # The disk is full, see the test.
        "full": {"from": "raw", "url": f"{tmp_path}/{canaries.file('out-file')}.nut", **IMPATIENT},
        "hls": {"url": f"/proc/{canaries.file('out-playlist')}/index.m3u8", **IMPATIENT},
        "option": {"url": f"{tmp_path}/option.mkv", "options": {"avioflags": canaries.file("out-option")}},
    }
    return {name: {"from": "main", **output} for name, output in outputs.items()}


def faulty_hooks(canaries, login):
    """The first finds nobody, the second is answered with 401."""
    return [{"name": "refused", "on": "incident", "secret": canaries.file("hook-secret"),
             "url": f"http://u:{canaries.file('hook-password', '@:')}@127.0.0.1:{free_port()}/in"
                    f"?token={canaries.plant('hook-token')}"},
            {"name": "401", "on": ["incident", "segment"], "secret": canaries.plant("hook-typed"),
             "url": f"http://127.0.0.1:{login}/{canaries.file('hook-path')}"}]


def everything_shown(daemon):
    """What a running daemon shows to others."""
    process = pathlib.Path(f"/proc/{daemon.process.pid}")
    paths = ["/", "/metrics", "/healthz", "/readyz", "/api/v1/feeds", "/api/v1/devices", "/api/v1/feeds/none",
             "/api/v1/trace?seconds=600"]
    feeds = [f"/api/v1/feeds/{feed['name']}" for feed in daemon.api("/api/v1/feeds")["feeds"]]
    paths += feeds + [f"{feed}/config" for feed in feeds]
    events = Events(daemon)
    told = [json.dumps(events.next()) for _ in range(2)]
    events.close()
    return {**{path: daemon.request("GET", path)[1] for path in paths},
            "events": "\n".join(told),
            "the command line": (process / "cmdline").read_text(),
            "names of threads": "".join(name.read_text() for name in process.glob("task/*/comm")),
            "the log": daemon.log()}


@pytest.mark.parametrize("form", ["text", "json", "journal"])
def test_no_secret_is_shown_whatever_fails(framelane, canaries, login, hostile, clip, tmp_path, request, form):
    """Neither in the log, in each of its forms, nor elsewhere."""
    journal = request.getfixturevalue("journal") if form == "journal" else None
    environment, inputs = faulty_inputs(canaries, login, hostile, clip)
    feeds = {name: {"input": {**IMPATIENT, **input_},
                    "encodes": {"main": x264() if input_.get("format") == "rawvideo" else COPY}}
             for name, input_ in inputs.items()}
    outputs = faulty_outputs(canaries, login, tmp_path)
    feeds["outputs"] = {"input": looped(clip), "encodes": {"main": x264(), "raw": encoder("rawvideo")},
                        "outputs": outputs}
    feeds["encoder"] = {"input": looped(clip), "encodes": {
        "main": x264(**{"x264-params": f"no-such={canaries.file('x264-params')}"}),
        "stats": x264(b="1M", flags="+pass2", stats=f"/nowhere/{canaries.file('stats')}")}}
    (tmp_path / "included.yaml").write_text(json.dumps({"feeds": {"included": {"input": {
        "url": f"rtsp://u:{canaries.plant('included')}@127.0.0.1:{free_port()}/", **IMPATIENT}}}}))
    config = {"log": {"level": "trace", "format": "json" if form == "json" else "text"}, "include": "included.yaml", "feeds": feeds,
              "hooks": faulty_hooks(canaries, login)}
    canaries.file("token")
    (canaries.folder / "token").chmod(0o600)
    # A disk that is full after 3 MB, which are five frames of raw video.
    wrapper = ("prlimit", "--fsize=3000000")
    if journal:
        journal.read_on()
        environment, wrapper = {**environment, **journal.environment}, (*journal.wrapper, *wrapper)
    daemon = framelane(config, env=environment, wrapper=wrapper, token=canaries["token"],
                       admin={"tokens": {"control": [str(canaries.folder / "token")]}}).wait_ready()
    wrong = base64.b64encode(f"u:{canaries.plant('wrong-token')}".encode()).decode()
    canaries.basic("wrong-basic", "u", canaries["wrong-token"])
    for header in (f"Bearer {canaries['wrong-token']}", f"Basic {wrong}"):
        path = f"/metrics?token={canaries['wrong-token']}"
        assert daemon.request("GET", path, headers={"Authorization": header})[0] == 401
    daemon.wait_metrics(
        lambda m: all(m.sum("framelane_source_reconnects_total", feed=name) > 0
                      or m.feed_state(name) == "failed" for name in [*inputs, "included"])
        and all(m.sum("framelane_output_reconnects_total", output=name) > 0
                or m.one("framelane_output_paused", feed="outputs", output=name) == 1 for name in outputs),
        "every input and output to fail", 30)
    if journal:
        wait_until(lambda: {record["FEED"] for record in journal.records()} == set(feeds) | {"included"},
                   "lines about each feed in the journal")
    else:
        daemon.wait_log("open stats file")
        for hook in ("refused", "401"):
            daemon.wait_log(f"hook {hook}: ")
    canaries.assert_unseen(everything_shown(daemon))
    daemon.stop()
    if journal:
        canaries.assert_unseen({"the journal": "\n".join(
            f"{name}={value}" for record in journal.records() for name, value in record.items())})
    asked_for = canaries["out-file"]
    names = [path.name for path in tmp_path.rglob("*") if canaries.folder not in path.parents]
    assert any(name.startswith(asked_for) for name in names)
    canaries.assert_unseen({"the log": daemon.log(), "a name of a file": "\n".join(
        name for name in names if not name.startswith(asked_for))})


def wrong_configuration(canaries):
    """A configuration in which secrets stand where they do not belong."""
    def url(place):
        return f"rtsp://u:{canaries.plant(place)}@h/"

    return {
        "log": {"level": canaries.file("log-level")},
        "device": canaries.file("device"),
        "hooks": [{"on": canaries.file("hook-on"), "url": f"ftp://u:{canaries.plant('hook-url')}@h/", "name": canaries.file("hook-name"),
                   "secret": canaries.file("hook-secret"), "timeout": canaries.file("hook-timeout")},
                  {"on": "segment", "url": f"http://u:{canaries.plant('hook-port')}@h:99999/"},
                  {"on": "segment", "url": "http://h/", "secret": canaries.plant("hook-short", length=10)}],
        "defaults": {"ring": canaries.file("defaults")},
        "profiles": {"p": {"lanes": canaries.file("profile-key")}},
        "feeds": {
            "a": {"profile": canaries.file("profile"), url("key"): 1, "input": {"url": "a.mp4"}},
            "b": {"input": {"url": url("empty") + "${", "timeout": canaries.file("timeout"),
                            "pace": canaries.file("pace"), "decoder": url("decoder"),
                            "format": canaries.file("format"), "protocols": [canaries.file("protocols")],
                            "reconnect": {"first": "${FIRST_TOKEN:-%s}" % canaries.plant("default")},
                            "options": {"no_such_option": canaries.file("no-such-option")}}},
            "c": {"input": raw_input(canaries.file("raw"), canaries.file("pixel-format"), canaries.file("size"),
                                     canaries.file("rate")),
                  "encodes": {"main": {
                      "convert": {"matrix": canaries.file("matrix"), "size": canaries.file("convert-size")},
                      "video": {"codec": [{"name": canaries.file("codec"), "options": {}},
                                          {"name": "libx264", "options": {"preset": canaries.file("preset")}}],
                                "bitrate": canaries.file("bitrate"), "gop": canaries.file("gop")}}}},
            "d": {"input": {"url": "d.mp4"}, "outputs": {
                "no-container": {"url": f"/nowhere/{canaries.file('no-container')}"},
                "from": {"url": "d.mkv", "from": canaries.file("from")},
                "keep": {"url": f"/nowhere/{canaries.file('keep')}-%s.ts", "segment": "1s",
                         "keep": {"size": canaries.file("keep-size"), "age": canaries.file("keep-age")}},
                "format": {"url": "null:", "format": canaries.file("out-format"),
                           "options": {"no_such_option": canaries.plant("out-no-such-option")}}}},
            "e": {"input": {"url": f"rtsp://u:{canaries.plant('lone')}$@h/"}},
            "f": {"input": {"url": "rtsp://u:${%s}@h/" % canaries.plant("no variable at all", "-")}},
            "g": {"input": {"url": "rtsp://u:${file:missing}@h/" + canaries.file("beside-missing")}},
        }}


def test_no_secret_is_shown_of_a_wrong_configuration(framelane, cli, canaries, clip, tmp_path):
    environment = {"CREDENTIALS_DIRECTORY": str(canaries.folder)}
    good = one_feed(looped(clip), COPY)
    good["log"] = {"level": "trace"}
    daemon = framelane(good, env=environment).wait_ready()
    bad = wrong_configuration(canaries)
    answer = daemon.reload(bad, expected=422)
    keys = {problem["key"] for problem in answer["error"]["problems"]}
    assert {"log.level", "device", "feeds.b.input.timeout", "feeds.d.outputs.format.format",
            "feeds.g.input.url"} <= keys and len(keys) >= 28, keys
    canaries.assert_unseen({"the answer": json.dumps(answer), **everything_shown(daemon)})
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(json.dumps(bad))
    for arguments in (("check",), ("check", "--no-env"), ("run",), ("healthcheck",)):
        done = cli(*arguments, "-c", wrong, env={**os.environ, **environment})
        assert done.returncode != 0
        canaries.assert_unseen({str(arguments): done.stdout + done.stderr})
    secret = canaries.plant("syntax")
    for text in (f'password: "{secret}', f"a: {secret}: {secret}", f"{secret}\n- a", f"a: [{secret}",
                 f"*{secret}", f"feeds: {{a: !{secret} 1}}"):
        wrong.write_text(text)
        done = cli("check", "-c", wrong)
        assert done.returncode == 78
        canaries.assert_unseen({text: done.stdout + done.stderr})


def test_no_secret_of_a_command_line_is_shown(cli, canaries, login, clip, tmp_path):
    here = f"127.0.0.1:{free_port()}"
    environment = {**os.environ, "CREDENTIALS_DIRECTORY": str(canaries.folder)}
    commands = [
        ("transcode", f"rtsp://u:{canaries.plant('refused')}@{here}/", tmp_path / "a.mkv"),
        ("transcode", f"http://u:{canaries.file('401')}@127.0.0.1:{login}/", tmp_path / "b.mkv"),
        ("transcode", clip, f"/proc/{canaries.file('folder')}/c.mkv"),
        ("transcode", "--json", clip, f"rtmp://{here}/live/{canaries.plant('key')}"),
        ("transcode", "--option", f"passphrase={canaries.plant('option')}", clip, tmp_path / "d.mkv"),
        ("transcode", "--format", canaries.file("format"), clip, tmp_path / "e"),
        ("transcode", f"/nowhere/{canaries.file('input')}.mp4", "null:"),
        ("transcode", clip, f"rtsp://u:{canaries.plant('usage')}@{here}/", "--no-such-option"),
        ("healthcheck", "--url", f"http://u:{canaries.plant('listener')}@{here}/"),
    ]
    for command in commands:
        done = cli(*command, env=environment)
        assert done.returncode != 0, command
        canaries.assert_unseen({str(command): done.stdout + done.stderr})


def test_the_process_list_shows_no_secret_of_a_command_line(canaries, start):
    """Not only URLs may have one."""
    process = start(BINARY, "transcode", "--quiet", "--overlay-text", f"password={canaries.plant('text')}",
                    "lavfi:testsrc2=size=320x240:rate=30", "null:")
    line = pathlib.Path(f"/proc/{process.pid}/cmdline")
    wait_until(lambda: "**" in line.read_text(), "something to be blanked")
    canaries.assert_unseen({"the command line": line.read_text()})
    assert process.poll() is None
