# Longer than 400 lines: each rule for what comes from the network has its test, with the same servers.
"""What comes from the network reads no local file, reaches no other scheme and no address of this machine, and
cannot make framelane hold or read without end. docs/security.md has the rules."""

import itertools
import os
import pathlib
import random
import re
import socketserver
import struct
import subprocess
import sys
import threading
import zlib

import pytest

from harness import media, transport_stream
from harness.configs import COPY, IMPATIENT, one_feed
from harness.daemon import BINARY
from harness.http_camera import HostileServer

NETWORK = "what comes from the network may not open"
METADATA = "http://169.254.169.254/latest/1.ts"  # of a cloud's machine; nothing is sent there


@pytest.fixture
def segment(made, clip):
    """A segment that a playlist may name."""
    return made("secret.ts", "-i", clip, "-c", "copy")


def playlist(*lines, end="#EXT-X-ENDLIST\n"):
    return "#EXTM3U\n#EXT-X-TARGETDURATION:5\n" + "".join(f"{line}\n" for line in lines) + end


def of_segments(*urls):
    return playlist(*(f"#EXTINF:5,\n{url}" for url in urls))


def refused(cli, url, tmp_path, words, *arguments):
    """Runs transcode, which has to refuse the input in one line with these words; returns the line."""
    out = tmp_path / "out.mkv"
    done = cli("transcode", url, out, "--codec", "copy", *arguments)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and words in done.stderr, done.stderr
    assert not list(tmp_path.glob("out*"))
    return done.stderr


def test_a_playlist_and_a_redirect_within_the_web_are_read(cli, hostile, segment, tmp_path):
    hostile.answers["/live.m3u8"] = of_segments("/1.ts", hostile.url("/moved.ts"))
    hostile.answers["/1.ts"] = segment.read_bytes()
    hostile.moved["/moved.ts"] = "/1.ts"
    done = cli("transcode", hostile.url(), tmp_path / "out.mkv", "--codec", "copy")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(tmp_path / "out.mkv") >= 42


@pytest.mark.parametrize("kind", ["encrypted", "parts of one file"])
def test_what_playlists_may_do_within_the_web_is_read(cli, hostile, clip, tmp_path, kind):
    """Segments on another host, encrypted with a key from a third, or as byte ranges of one file."""
    media_host, key_host = HostileServer("127.0.0.2"), HostileServer("127.0.0.3")
    try:
        options = ["-hls_flags", "single_file"]
        if kind == "encrypted":
            key, about = tmp_path / "key", tmp_path / "key.info"
            key.write_bytes(b"0123456789abcdef")
            about.write_text(f"{key_host.url('/key')}\n{key}\n")
            key_host.answers["/key"] = key.read_bytes()
            options = ["-hls_key_info_file", about]
        media.ffmpeg("-i", clip, "-c:v", "libx264", "-preset", "ultrafast", "-g", 10, "-f", "hls", "-hls_time", 1,
                     "-hls_list_size", 0, "-hls_base_url", media_host.url("/"), *options, tmp_path / "live.text")
        for segment in tmp_path.glob("live*.ts"):
            media_host.answers[f"/{segment.name}"] = segment.read_bytes()
        hostile.answers["/live.m3u8"] = (tmp_path / "live.text").read_text()
        done = cli("transcode", hostile.url(), tmp_path / "out.mkv", "--codec", "copy")
        assert done.returncode == 0, done.stderr
        assert media.frame_count(tmp_path / "out.mkv") == 42
        asked = media_host.asked + key_host.asked
        assert (len(set(asked)) == 1) == (kind != "encrypted") and ("/key" in asked) == (kind == "encrypted")
    finally:
        media_host.close()
        key_host.close()


# tests/pipeline/source/input_access_test.cpp has all of them.
@pytest.mark.parametrize("scheme, named", [
    ("file://", "files"), ("concat:", "URLs of concat"), ("crypto+file:", "files"),
    ("rtsp://127.0.0.1:9", "URLs of rtsp"), ("tcp://127.0.0.1:9", "URLs of tcp"),
])
def test_a_playlist_from_the_network_names_neither_files_nor_other_schemes(
    cli, hostile, segment, tmp_path, scheme, named
):
    hostile.answers["/live.m3u8"] = of_segments(f"{scheme}{segment}")
    line = refused(cli, hostile.url(), tmp_path, f"{NETWORK} {named}; input.protocols: [default, ")
    assert f"{hostile.url()} names {scheme}{segment}, and" in line


@pytest.mark.parametrize("text", [
    playlist('#EXT-X-KEY:METHOD=AES-128,URI="{file}"', "#EXTINF:5,\n/1.ts"),
    playlist('#EXT-X-MAP:URI="{file}"', "#EXTINF:5,\n/1.ts"),
    playlist("#EXT-X-STREAM-INF:BANDWIDTH=1\n{file}"),
    playlist('#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="{file}"',
             '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\n/1.ts'),
    of_segments("/1.ts", "{file}"),
], ids=["key", "map", "variant", "rendition", "later segment"])
def test_no_tag_of_a_playlist_names_a_file(cli, hostile, segment, tmp_path, text):
    hostile.answers["/live.m3u8"] = text.format(file=f"file://{segment}")
    hostile.answers["/1.ts"] = segment.read_bytes()
    refused(cli, hostile.url(), tmp_path, f"{NETWORK} files; input.protocols: [default, file]")


def test_a_playlist_of_a_variant_names_no_file(cli, hostile, segment, tmp_path):
    hostile.answers["/live.m3u8"] = playlist("#EXT-X-STREAM-INF:BANDWIDTH=1\n/low.m3u8", end="")
    hostile.answers["/low.m3u8"] = of_segments(f"file://{segment}")
    refused(cli, hostile.url(), tmp_path, f"{NETWORK} files; input.protocols: [default, file]")


def test_a_part_of_a_file_is_no_segment(cli, hostile, segment, tmp_path):
    hostile.answers["/live.m3u8"] = of_segments(f"subfile,,start,0,end,9999,,:{segment}")
    refused(cli, hostile.url(), tmp_path, hostile.url())


@pytest.mark.sanitizers
def test_a_playlist_that_turns_bad_while_it_is_read_ends_the_source_with_the_reason(
    framelane, hostile, segment
):
    good = playlist("#EXTINF:4,\n/1.ts", end="")
    hostile.answers["/live.m3u8"] = good
    hostile.answers["/1.ts"] = segment.read_bytes()
    daemon = framelane(one_feed({"url": hostile.url(), **IMPATIENT, "timeout": "3s"})).wait_ready()
    daemon.wait_frames("cam", 10)
    hostile.answers["/live.m3u8"] = playlist("#EXTINF:4,\n/1.ts", f"#EXTINF:4,\nfile://{segment}", end="")
    daemon.wait_log(f"feed cam: {hostile.url()} names file://{segment}, and {NETWORK} files")
    hostile.answers["/live.m3u8"] = good
    daemon.wait_more_frames("cam", 10)


def test_a_manifest_of_dash_names_no_file(cli, hostile, segment, tmp_path):
    hostile.answers["/live.mpd"] = f"""<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static"
 mediaPresentationDuration="PT4S" minBufferTime="PT1S"><Period><AdaptationSet mimeType="video/mp4">
 <Representation id="1" bandwidth="1"><BaseURL>file://{segment.with_suffix('.mp4')}</BaseURL></Representation>
 </AdaptationSet></Period></MPD>"""
    refused(cli, hostile.url("/live.mpd"), tmp_path, f"{NETWORK} files; input.protocols: [default, file]")


def test_a_manifest_of_dash_leads_to_no_link_local_address(cli, hostile, tmp_path):
    hostile.answers["/live.mpd"] = f"""<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-main:2011" type="static"
 mediaPresentationDuration="PT5S" minBufferTime="PT1S"><Period><AdaptationSet mimeType="video/mp2t">
 <Representation id="1" bandwidth="1"><SegmentList duration="5"><SegmentURL media="{METADATA}"/></SegmentList>
 </Representation></AdaptationSet></Period></MPD>"""
    refused(cli, hostile.url("/live.mpd"), tmp_path, "leads to 169.254.169.254, a link-local address")


def test_a_script_of_concat_does_not_come_from_the_network(cli, hostile, segment, tmp_path):
    hostile.answers["/video.mp4"] = f"ffconcat version 1.0\nfile {segment}\n"
    refused(cli, hostile.url("/video.mp4"), tmp_path,
            "is of the format concat, which input.formats does not allow for an input from the network; "
            "input.formats: [default, concat] allows it")


def test_sdp_from_the_network_opens_no_ports(cli, hostile, tmp_path):
    hostile.answers["/camera.sdp"] = ("v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
                                      "m=video 5004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n")
    refused(cli, hostile.url("/camera.sdp"), tmp_path, "is of the format sdp, which input.formats does not allow")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "rtsp://127.0.0.1:9/", "concat:/etc/passwd"])
def test_a_redirect_leads_to_no_other_scheme(cli, hostile, tmp_path, target):
    hostile.moved["/video.mp4"] = target
    refused(cli, hostile.url("/video.mp4"), tmp_path,
            "a redirect to another scheme than http and https is not followed")


def test_a_redirect_leads_to_no_link_local_address(cli, hostile, tmp_path):
    hostile.moved["/video.mp4"] = METADATA
    refused(cli, hostile.url("/video.mp4"), tmp_path,
            f"{hostile.url('/video.mp4')} leads to 169.254.169.254, a link-local address, which input.url does "
            "not name itself; add link_local to input.addresses to allow it")


@pytest.mark.parametrize("url", [METADATA, "http://[::ffff:169.254.169.254]/1.ts", "http://2852039166/1.ts"])
def test_a_playlist_leads_to_no_link_local_address(cli, hostile, tmp_path, url):
    hostile.answers["/live.m3u8"] = of_segments(url)
    refused(cli, hostile.url(), tmp_path, f"names {url}, which leads to ")


def test_a_segment_that_moves_to_a_link_local_address_is_not_read(cli, hostile, tmp_path):
    hostile.answers["/live.m3u8"] = of_segments("/1.ts")
    hostile.moved["/1.ts"] = METADATA
    refused(cli, hostile.url(), tmp_path,
            f"names {hostile.url('/1.ts')}, which leads to 169.254.169.254, a link-local address")


@pytest.mark.parametrize("text, words", [
    ("#EXTM3U\n" + "#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n" * 200,
     "has more streams than input.limits.streams allows (128)"),
    ("#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + "#EXTINF:1,\na.ts\n" * 100_001,
     "sends a playlist of more than 100000 segments; no key allows more: have the sender list fewer"),
    ("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n" + "crypto:" * 44_000 + "a.ts\n",
     "names a URL of 308004 bytes, where 4096 are the most; no key allows more: have the sender name a shorter one"),
], ids=["variants", "segments", "URLs within URLs"])
def test_a_playlist_that_would_become_large_in_memory_is_refused(cli, hostile, tmp_path, text, words):
    hostile.answers["/live.m3u8"] = text
    refused(cli, hostile.url(), tmp_path, words)


SDP = ("v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
       "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:1\r\n")


@pytest.fixture
def rtsp_server():
    """Starts an RTSP server without pictures, of which the answers have more headers by the request's method, or are
    what stands there in their place; returns its URL."""
    servers = []

    def start(more):
        class Camera(socketserver.StreamRequestHandler):
            def handle(self):
                text = ""
                while line := self.rfile.readline().decode():
                    text += line
                    if line != "\r\n":
                        continue
                    method, sequence = text.split()[0], re.search(r"CSeq: \d+", text)[0]
                    body = SDP if method == "DESCRIBE" else ""
                    headers = f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n" if body else ""
                    answer = more.get(method, "")
                    if not answer.startswith("RTSP/"):
                        answer = f"RTSP/1.0 200 OK\r\n{answer}"
                    self.wfile.write(f"{answer}{sequence}\r\n{headers}\r\n{body}".encode())
                    text = ""

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Camera)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"rtsp://127.0.0.1:{server.server_address[1]}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("target, words", [
    ("rtsp://169.254.169.254/stream1", "leads to 169.254.169.254, a link-local address"),
    ("http://127.0.0.1/1.ts", "a redirect to another scheme than rtsp and rtsps is not followed"),
])
def test_a_camera_sends_nobody_on_to_what_its_url_does_not_name(cli, rtsp_server, tmp_path, target, words):
    url = rtsp_server({"OPTIONS": f"RTSP/1.0 302 Moved\r\nLocation: {target}\r\n"})
    assert url in refused(cli, url, tmp_path, words)


def test_a_camera_that_names_a_link_local_address_to_send_to_is_told_apart_from_a_silent_one(
    framelane, rtsp_server
):
    url = rtsp_server({"SETUP": "Session: 1\r\nTransport: RTP/AVP/UDP;unicast;client_port=5000-5001;"
                                "server_port=5300-5301;source=169.254.169.254\r\n"})
    input_ = {"url": url, **IMPATIENT, "timeout": "2s", "options": {"rtsp_transport": "udp"}}
    framelane(one_feed(input_, COPY)).wait_log(f"{url} leads to 169.254.169.254, a link-local address")


# Runs where nothing but this test is: a server that is no loopback address, and one that is.
IN_A_NAMESPACE = """
import fcntl, pathlib, socket, struct, subprocess, sys
sys.path.insert(0, {harness!r})
from harness.http_camera import HostileServer

def set_up(name, address=None):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", name.encode(), socket.AF_INET)
        if address:
            request = struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, 0x8916, request)  # SIOCSIFADDR
        flags = struct.unpack("16sH", fcntl.ioctl(control, 0x8913, request)[:18])[1]
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", name.encode(), flags | 1))  # up

set_up("lo")
set_up("lo:1", "198.51.100.7")
server = HostileServer("0.0.0.0")
segment = pathlib.Path(sys.argv[2]).read_bytes()
server.answers["/1.ts"] = server.answers["/secret.ts"] = segment
for name, named in (("good", "/1.ts"), ("bad", server.url("/secret.ts")), ("moved", "/moved.ts")):
    server.answers["/" + name + ".m3u8"] = "#EXTM3U\\n#EXT-X-TARGETDURATION:5\\n#EXTINF:5,\\n" + named + "\\n#EXT-X-ENDLIST\\n"
server.moved["/moved.ts"] = server.moved["/redirect.m3u8"] = server.url("/secret.ts")
for name in ("good", "bad", "moved", "redirect"):
    url = server.url("/" + name + ".m3u8").replace("127.0.0.1", "198.51.100.7")
    done = subprocess.run([sys.argv[1], "transcode", "-y", url, "out.mkv", "--codec", "copy"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    print(name, done.returncode, "/secret.ts" in server.asked, done.stderr.strip().replace("\\n", " / "))
"""


def test_nothing_from_another_machine_leads_to_loopback(segment, tmp_path):
    harness = str(pathlib.Path(__file__).parent)
    # With a user namespace around it, a network may be set up without privileges, and in some containers.
    unshare = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        pytest.skip("a network namespace needs root")
    done = subprocess.run(
        [*unshare, sys.executable, "-c", IN_A_NAMESPACE.format(harness=harness), str(BINARY), str(segment)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=tmp_path, check=True, timeout=120)
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert lines["good"].startswith("0 False "), done.stdout
    for name in ("bad", "moved", "redirect"):
        assert lines[name].startswith("1 False "), done.stdout
        assert "leads to 127.0.0.1, a loopback address, which input.url does not name itself" in lines[name]


def endless_playlist():
    return itertools.chain([b"#EXTM3U\n"], itertools.repeat(b"#EXTINF:1,\n1.ts\n" * 10_000))


def packed(parts):
    """The parts as one answer with gzip, without an end."""
    packer = zlib.compressobj(9, wbits=31)
    for part in parts:
        data = packer.compress(part)
        if data:
            yield data


def high_water(daemon):
    """The most memory that it has had, in MiB."""
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


@pytest.mark.asan
@pytest.mark.parametrize("answer", [
    lambda: endless_playlist(),
    lambda: (packed(endless_playlist()), {"Content-Encoding": "gzip"}),
    lambda: itertools.chain([b"<MPD "], itertools.repeat(b" " * 100_000)),
], ids=["plain", "packed", "dash"])
def test_a_playlist_without_an_end_is_refused(framelane, hostile, answer):
    hostile.answers["/live.m3u8"] = answer()
    input_ = {"url": hostile.url(), "timeout": "10s", "reconnect": {"first": "1m", "max": "1m"},
              "limits": {"playlist_size": "4M"}}
    daemon = framelane(one_feed(input_, COPY)).wait_ready()
    before = high_water(daemon)
    daemon.wait_state("cam", "backoff")
    assert daemon.feed("cam")["reason"].startswith(
        f"{hostile.url()} sends a playlist of more than input.limits.playlist_size (4000000 bytes)")
    assert high_water(daemon) < before + 100


def test_playlists_of_playlists_end_after_the_second(cli, hostile, tmp_path):
    def variants(number):
        return playlist(f"#EXT-X-STREAM-INF:BANDWIDTH=1\n/{number}.m3u8", end="")

    hostile.answers["/live.m3u8"] = variants(0)
    for number in range(100):
        hostile.answers[f"/{number}.m3u8"] = variants(number + 1)
    refused(cli, hostile.url(), tmp_path, hostile.url())
    assert "/0.m3u8" in hostile.asked and "/1.m3u8" not in hostile.asked


def test_streams_by_the_thousand_are_refused(cli, hostile, tmp_path):
    hostile.answers["/video.ts"] = transport_stream.of_many_streams(3000)
    refused(cli, hostile.url("/video.ts"), tmp_path,
            "has more streams than input.limits.streams allows (128); raise it if that is right")


def test_probing_ends(framelane, hostile):
    hostile.answers["/video"] = itertools.repeat(random.Random(1).randbytes(10_000))
    input_ = {"url": hostile.url("/video"), "timeout": "20s", "reconnect": {"first": "1m", "max": "1m"},
              "limits": {"probe_size": "200k"}}
    daemon = framelane(one_feed(input_, COPY)).wait_ready()
    daemon.wait_state("cam", "backoff")
    assert "video" in daemon.feed("cam")["reason"]
    assert hostile.sent < 20_000_000  # what the system's buffers take


def with_size(jpeg, width, height):
    """The JPEG with another size in its header."""
    return re.sub(rb"(\xff\xc0\x00.\x08)....", lambda m: m[1] + struct.pack(">HH", height, width), jpeg,
                  flags=re.DOTALL)


def png(width, height, rows, *chunks):
    """A PNG of so many black rows, with more chunks, each a tuple of (type, data)."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes((3 * width + 1) * rows))
    text = b"\x89PNG\r\n\x1a\n"
    for kind, data in [(b"IHDR", header), *chunks, (b"IDAT", pixels), (b"IEND", b"")]:
        text += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return text


@pytest.fixture
def large_png():
    """The header of a picture of 12000x12000, which FFmpeg itself would decode, and of no more than a row."""
    return png(12000, 12000, 1)


def zeros(mebibytes):
    """So many, packed: about a thousandth."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()


def box(kind, data):
    return struct.pack(">I", 8 + len(data)) + kind + data


def old_quicktime():
    index = box(b"cmvd", struct.pack(">I", 250 << 20) + zeros(250))
    return box(b"ftyp", b"qt  \0\0\0\0") + box(b"moov", box(b"cmov", box(b"dcom", b"zlib") + index))


def id3_number(number):
    return bytes(number >> shift & 127 for shift in (21, 14, 7, 0))


def id3_tag():
    data = id3_number(20 << 20) + zeros(20)  # the tag is short enough to be looked for a format behind it
    frame = b"TXXX" + id3_number(len(data)) + b"\0\x09" + data
    return b"ID3\4\0\0" + id3_number(len(frame)) + frame + b"\xff\xfb\x90\0" + bytes(413)


@pytest.mark.parametrize("make, name", [(old_quicktime, "/1.mov"), (id3_tag, "/1.mp3")])
def test_a_compressed_header_is_not_unpacked(framelane, hostile, make, name):
    hostile.answers[name] = make()
    daemon = framelane(one_feed({"url": hostile.url(name), **IMPATIENT}, COPY)).wait_ready()
    before = high_water(daemon)
    daemon.wait_log(f"{hostile.url(name)} has a compressed header")
    assert "no key allows it: write it anew without one" in daemon.log()
    assert high_water(daemon) < before + 100


def test_a_segment_with_a_large_id3_tag_says_how_large_it_may_be(cli, hostile, tmp_path):
    hostile.answers["/live.m3u8"] = of_segments("/1.ts")
    hostile.answers["/1.ts"] = b"ID3\4\0\0" + id3_number(2 << 20) + bytes(2 << 20)
    refused(cli, hostile.url(), tmp_path,
            f"names {hostile.url('/1.ts')}, which begins with an ID3 tag of 2097152 bytes, where 1048576 are the "
            "most; no key allows more: have the sender put less into it")


@pytest.mark.parametrize("kind, name", [(b"zTXt", b"Comment\0\0"), (b"iCCP", b"x\0\0")], ids=["zTXt", "iCCP"])
def test_what_a_png_says_beside_its_picture_is_not_unpacked(framelane, hostile, kind, name):
    hostile.answers["/1.png"] = (png(64, 48, 48, (kind, name + zeros(250))), {"Content-Type": "image/png"})
    daemon = framelane(one_feed({"url": hostile.url("/1.png"), **IMPATIENT})).wait_ready()
    before = high_water(daemon)
    daemon.wait_frames("cam", 1)
    assert high_water(daemon) < before + 100


@pytest.mark.parametrize("from_network", [True, False], ids=["http", "file"])
@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_pictures_that_are_too_large_are_refused(cli, hostile, made, large_png, tmp_path, from_network, kind):
    jpeg = made("small.jpg", "-f", "lavfi", "-i", "testsrc2=size=64x48", "-frames:v", "1", "-update", "1")
    data = with_size(jpeg.read_bytes(), 65535, 65535) if kind == "jpeg" else large_png
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "video.bin").write_bytes(data)
    hostile.answers["/video.bin"] = data
    size = "65535x65535" if kind == "jpeg" else "12000x12000"
    url = hostile.url("/video.bin") if from_network else folder / "video.bin"
    refused(cli, url, tmp_path, f"has pictures of {size}, more than input.limits.pixels allows (67108864 pixels)")


def test_what_is_allowed_is_read(framelane, hostile, segment, tmp_path):
    hostile.answers["/live.m3u8"] = of_segments(f"file://{segment}")
    input_ = {"url": hostile.url(), "protocols": ["default", "file"], **IMPATIENT}
    daemon = framelane(one_feed(input_, COPY, {"f": {"url": str(tmp_path / "out.mkv")}})).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert media.frame_count(tmp_path / "out.mkv") == 42


def test_a_decoder_that_is_not_on_the_list_fails_the_feed_by_its_name(framelane, hostile, segment):
    hostile.answers["/1.ts"] = segment.read_bytes()
    config = one_feed({"url": hostile.url("/1.ts"), "decoders": ["mjpeg"], **IMPATIENT})
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "failed")
    assert "input.decoders: [mjpeg, h264] allows it" in daemon.feed("cam")["reason"]
