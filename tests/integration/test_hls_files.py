"""What of an output's HLS files the listener sends: /api/v1/feeds/NAME/hls/OUTPUT/FILE."""

import json
import os

import pytest

from harness.configs import looped, x264
from harness.daemon import WITHOUT_PRIVILEGES
from harness.waiting import wait_until


@pytest.fixture
def served(framelane, clip, tmp_path):
    """(a daemon that writes playlists, the folder of one that stands alone)"""
    folder = tmp_path / "live"
    hls = {"options": {"hls_time": 1, "hls_list_size": 3}}
    feed = {"input": looped(clip), "encodes": {"big": x264(), "small": {**x264(), "convert": {"size": "160x120"}}},
            "outputs": {"live": {"from": "small", "url": str(folder / "index.m3u8"), **hls},
                        "all": {"from": ["big", "small"], "url": str(tmp_path / "all" / "master.m3u8"), **hls},
                        "file": {"from": "big", "url": str(tmp_path / "out.mkv")}}}
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    wait_until(lambda: (folder / "index.m3u8").exists() and (tmp_path / "all" / "master.m3u8").exists(),
               "the playlists")
    return daemon, folder


@pytest.fixture
def ended(framelane, clip, tmp_path):
    """(a daemon that has written a playlist to its end, its folder)"""
    folder = tmp_path / "live"
    feed = {"input": {"url": str(clip)}, "encodes": {"main": x264()},
            "outputs": {"live": {"from": "main", "url": str(folder / "index.m3u8")}}}
    daemon = framelane({"feeds": {"cam": feed}}, wrapper=WITHOUT_PRIVILEGES).wait_ready()
    daemon.wait_state("cam", "ended")
    return daemon, folder


def uris(playlist):
    return [line for line in playlist.decode().splitlines() if line and not line.startswith("#")]


def test_a_playlist_and_what_it_names_is_sent(served, tmp_path):
    daemon, folder = served
    status, headers, playlist = daemon.ask_feed("cam/hls/live/index.m3u8")
    assert (status, headers["Content-Type"]) == (200, "application/vnd.apple.mpegurl")
    name = uris(playlist)[-1]
    status, headers, segment = daemon.ask_feed(f"cam/hls/live/{name}")
    assert (status, headers["Content-Type"]) == (200, "video/mp2t") and len(segment) % 188 == 0
    assert segment == (folder / name).read_bytes()
    for range_, part in [("bytes=0-187", segment[:188]), ("bytes=188-", segment[188:]),
                         ("bytes=-100", segment[-100:]), (f"bytes=188-{10**30}", segment[188:])]:
        status, headers, body = daemon.ask_feed(f"cam/hls/live/{name}", Range=range_)
        assert (status, body) == (206, part)
        assert headers["Content-Range"].endswith(f"/{len(segment)}")
    status, headers, _ = daemon.ask_feed(f"cam/hls/live/{name}", Range=f"bytes={len(segment)}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(segment)}")
    status, _, body = daemon.ask_feed(f"cam/hls/live/{name}", **{"Range": "bytes=0-187", "If-Range": '"another"'})
    assert (status, body) == (200, segment)
    master = daemon.ask_feed("cam/hls/all/master.m3u8")[2]
    assert len(uris(master)) == 2
    for rendition in uris(master):
        text = daemon.ask_feed(f"cam/hls/all/{rendition}")[2]
        base = rendition.rpartition("/")[0]
        segment = f"{base}/{uris(text)[-1]}" if base else uris(text)[-1]
        assert daemon.ask_feed(f"cam/hls/all/{segment}")[0] == 200


@pytest.mark.sanitizers
def test_nothing_else_is_sent(served, tmp_path):
    daemon, folder = served
    secret = tmp_path / "secret"
    secret.write_text("hush")
    (folder / "beside.txt").write_text("hush")
    # A playlist as an intruder would write it, who may write there. The daemon replaces it with its next segment.
    (folder / "link.ts").symlink_to(secret)
    os.mkfifo(folder / "pipe.ts")
    (folder / "deep").symlink_to(tmp_path)
    for path in ("live/beside.txt", "live/../secret", "live/%2e%2e/secret", f"live/{secret}", f"live//{secret}",
                 "live/deep/secret", "live/link.ts", "live/pipe.ts", "live/.", "live/", "live", "all/../live/beside.txt",
                 "file/out.mkv", "nothing/index.m3u8", "live/index.m3u8.tmp"):
        status, _, body = daemon.ask_feed(f"cam/hls/{path}")
        assert status == 404 and b"hush" not in body, path
        assert json.loads(body)["error"]["code"] in ("not_found", "no_such_playlist")
    assert json.loads(daemon.ask_feed("yard/hls/live/index.m3u8")[2])["error"]["code"] == "no_such_feed"


def test_links_that_a_playlist_names_are_not_followed(ended, tmp_path):
    """The output has ended, and somebody else has written to its folder."""
    daemon, folder = ended
    daemon.playlists = []  # what follows is not the daemon's
    (tmp_path / "secret").write_text("hush")
    (folder / "link.ts").symlink_to(tmp_path / "secret")
    (folder / "deep").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.ts")
    names = ["link.ts", "deep/secret", "pipe.ts", "../secret", str(tmp_path / "secret"), "good.ts"]
    good = (folder / "index.m3u8").read_text()
    (folder / "index.m3u8").write_text("#EXTM3U\n" + "\n".join(names) + "\n")
    large = os.urandom(3 << 20)  # it is read while it is sent
    (folder / "good.ts").write_bytes(large)
    try:
        answers = {name: daemon.ask_feed(f"cam/hls/live/{name}") for name in names}
    finally:
        (folder / "index.m3u8").write_text(good)
    assert {name for name, (status, _, _) in answers.items() if status == 200} == {"good.ts"}
    assert answers["good.ts"][2] == large
    assert all(b"hush" not in body for _, _, body in answers.values())


def test_a_file_that_may_not_be_read_is_told_apart_from_one_that_is_not_there(ended):
    daemon, folder = ended
    name = uris((folder / "index.m3u8").read_bytes())[0]
    (folder / name).chmod(0)
    status, _, body = daemon.ask_feed(f"cam/hls/live/{name}")
    assert (status, json.loads(body)["error"]["code"]) == (500, "unreadable")
    assert json.loads(body)["error"]["message"] == f"{name} cannot be read: Permission denied"
    assert daemon.ask_feed(f"cam/hls/live/{name}", method="HEAD")[0] == 500
    (folder / name).unlink()
    assert daemon.ask_feed(f"cam/hls/live/{name}")[0] == 404
    (folder / name).write_bytes(b"x" * 1000)
    status, headers, body = daemon.ask_feed(f"cam/hls/live/{name}", method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, "1000", b"")


def test_a_playlist_that_never_ends_takes_neither_memory_nor_long(ended):
    daemon, folder = ended
    daemon.playlists = []  # what follows is not the daemon's
    segment = (folder / uris((folder / "index.m3u8").read_bytes())[0]).read_bytes()
    (folder / "last.ts").write_bytes(segment)
    (folder / "r.m3u8").write_text("#EXTM3U\n" + "x.ts\n" * 1_000_000)
    renditions = [f"r{number}.m3u8" for number in range(100)]
    for rendition in renditions:
        os.link(folder / "r.m3u8", folder / rendition)
    good = (folder / "index.m3u8").read_text()
    resident = daemon.metrics().one("process_resident_memory_bytes")
    # A long line, names on both sides of where pieces are read, and no end of the last line.
    for text, status in [("x" * 200_000 + "\nlast.ts", 200), ("x" * 65_530 + "\nlast.ts\n", 200),
                         ("last.ts" * 20_000 + "\n", 404), ("\n".join(renditions), 404),
                         ("\n".join(renditions) + "\nlast.ts", 200), ("\0" * 70_000_000 + "\nlast.ts", 404)]:
        (folder / "index.m3u8").write_text("#EXTM3U\n" + text)
        assert daemon.ask_feed("cam/hls/live/last.ts")[0] == status, text[:20]
    (folder / "index.m3u8").write_text(good)
    for rendition in ["r.m3u8", *renditions]:
        (folder / rendition).unlink()
    assert daemon.metrics().one("process_resident_memory_bytes") < resident + (32 << 20)
