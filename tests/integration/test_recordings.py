# Longer than 400 lines: lists, files and spans are asked for and checked by the same helpers.
"""Recordings by time: /api/v1/feeds/NAME/recordings."""

import calendar
import datetime
import json
import os
import re
import struct
import time
import urllib.parse

import pytest

from harness import media
from harness.configs import COPY, IMPATIENT, encoder, looped, one_feed, x264
from harness.preload import preload
from harness.waiting import wait_until

NTP_EPOCH = 2208988800  # of 1900, in seconds before 1970
FRAME = 0.04  # of camera_clip, in seconds
EXACT = 0.01


def listed(daemon, output, **query):
    """What the list says of an output."""
    status, _, body = daemon.ask_feed(f"cam/recordings?{urllib.parse.urlencode({'output': output, **query})}")
    assert status == 200, body
    said, = json.loads(body)["outputs"]
    assert said["output"] == output
    return said


def complete(daemon, output):
    return [file for file in listed(daemon, output)["files"] if file["complete"]]


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def begin_of(path):
    """When the first picture was taken, by the file's own word; of MPEG-TS by its name, to the second."""
    if path.suffix == ".ts":
        return time.mktime(time.strptime(f"{path.parent.name} {path.stem[:6]}", "%Y-%m-%d %H%M%S"))
    if path.suffix == ".mkv":
        told = media.probe(path)["format"]["tags"]["creation_time"]
        whole, fraction = re.fullmatch(r"(.*)(\.\d+)Z", told).groups()
        return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(fraction)
    data = path.read_bytes()
    at = data.index(b"prft")
    whole, part = struct.unpack(">II", data[at + 12:at + 20])
    return whole - NTP_EPOCH + part / 2**32


def packets(path):
    """(when it is shown, when it is decoded, is it a keyframe) of each picture, from the first one on."""
    found = media.probe(path, "-select_streams", "v:0", "-show_entries", "packet=pts_time,dts_time,flags")["packets"]
    first = float(found[0]["pts_time"])
    return [(float(each["pts_time"]) - first, float(each.get("dts_time", each["pts_time"])) - first,
             "K" in each["flags"]) for each in found]


KINDS = ("mp4", "mkv", "ts")


def archive(clip, folder, kinds=("mp4",), segment="1s"):
    outputs = {kind: {"url": f"{folder}/{kind}/%Y-%m-%d/%H%M%S.{kind}", "segment": segment} for kind in kinds}
    return one_feed(looped(clip), COPY, outputs)


def span(daemon, output, begin, end, path, **headers):
    """Writes the span to a file. Returns the answer's headers."""
    status, said, body = daemon.ask_feed(f"cam/recordings/{output}.mp4?from={begin}&to={end}", **headers)
    assert status == 200, body
    path.write_bytes(body)
    return said


def refused(answer):
    status, _, body = answer
    error = json.loads(body)["error"]
    return status, error["code"], error["key"]


def check_list(said, folder, kind):
    """Holds the times of complete recordings against what is in them."""
    files = said["files"]
    assert [file["end"] for file in files] == sorted(file["end"] for file in files)
    for file in files:
        if not file["complete"]:
            continue
        path = folder / kind / file["file"]
        assert file["bytes"] == path.stat().st_size
        shown = sorted(at for at, _, _ in packets(path))
        begin, end = seconds(file["begin"]), seconds(file["end"])
        # How long the last picture is shown, MPEG-TS does not say.
        assert end - begin == pytest.approx(shown[-1] - shown[0] + FRAME, abs=EXACT if kind != "ts" else 3 * FRAME)
        # The name of MPEG-TS tells the second.
        assert 0 <= begin - begin_of(path) < 1 if kind == "ts" else abs(begin - begin_of(path)) < EXACT


@pytest.mark.asan
def test_the_list_tells_when_pictures_were_taken_and_what_is_missing(framelane, camera_clip, tmp_path):
    started = time.time()
    daemon = framelane(archive(camera_clip, tmp_path, KINDS, "2s")).wait_ready()
    wait_until(lambda: all(len(complete(daemon, kind)) >= 1 for kind in KINDS), "a recording")
    stopping = time.time()
    daemon.stop()
    stopped = time.time()
    before = {kind: len(list(tmp_path.glob(f"{kind}/*/*.{kind}"))) for kind in KINDS}
    wait_until(lambda: time.time() > stopped + 2.5, "a gap")
    daemon = framelane(archive(camera_clip, tmp_path, KINDS, "2s")).wait_ready()
    for kind in KINDS:
        wait_until(lambda: len(complete(daemon, kind)) > before[kind], "a recording behind the gap")
        said = wait_until(lambda: (now := listed(daemon, kind)) and not now["files"][-1]["complete"] and now,
                          "one that is still written")
        asked = time.time()
        files = said["files"]
        assert [file["complete"] for file in files] == [True] * (len(files) - 1) + [False]
        check_list(said, tmp_path, kind)
        assert started - 1 < seconds(files[0]["begin"]) and seconds(files[-2]["end"]) < asked + 0.5
        # Of a file that is still written, a part of the last seconds may not be in it.
        assert asked - 8 < seconds(files[-1]["end"]) < asked + 0.5
        gap, = said["gaps"]
        first = before[kind]  # behind the gap
        assert (gap["begin"], gap["end"]) == (files[first - 1]["end"], files[first]["begin"])
        assert gap["seconds"] == pytest.approx(seconds(gap["end"]) - seconds(gap["begin"]), abs=0.002)
        # What was taken in the last moment before the stop is in the file.
        assert stopping - 1.5 < seconds(gap["begin"]) < stopped + 0.5 < seconds(gap["end"])
        # A part of the time has the recordings of this part. What is missing at its begin is a gap there.
        begin = seconds(gap["end"]) - 2.2
        part = listed(daemon, kind, **{"from": begin, "to": seconds(files[-2]["begin"]) + 0.1})
        assert [file["file"] for file in part["files"]] == [file["file"] for file in files[first:-1]]
        assert [seconds(each["begin"]) for each in part["gaps"]] == [pytest.approx(begin, abs=0.002)]
        assert listed(daemon, kind, **{"from": started - 100, "to": started - 50}) == {
            "output": kind, "files": [], "gaps": []}
        # It stays a gap in a span.
        path = tmp_path / "span.mp4"
        begin = seconds(files[0]["begin"])
        span(daemon, kind, begin, seconds(files[-2]["end"]), path)
        shown = sorted(at for at, _, _ in packets(path))
        longest, at = max((later - earlier, earlier) for earlier, later in zip(shown, shown[1:]))
        exact = EXACT if kind != "ts" else 1
        assert longest == pytest.approx(gap["seconds"] + FRAME, abs=exact)
        assert begin + at + FRAME == pytest.approx(seconds(gap["begin"]), abs=exact)
        assert media.decodes_cleanly(path)


def test_where_recordings_overlap_a_span_has_every_picture_once(framelane, camera, tmp_path):
    """The camera stays connected, and goes on in the middle of a group, with which the next recording begins."""
    source = camera()
    config = archive("", tmp_path, segment="1h")
    config["feeds"]["cam"].update(on_gap={"split_after": "1s"}, input={
        "url": source.url, "options": {"rtsp_transport": "tcp"}, "timeout": "30s"})
    daemon = framelane(config).wait_ready()
    wait_until(lambda: listed(daemon, "mp4")["files"], "a recording")
    source.freeze()
    wait_until(lambda: complete(daemon, "mp4"), "it to end with the camera")
    source.thaw()
    said = wait_until(lambda: len((now := listed(daemon, "mp4"))["files"]) > 1 and now, "the next recording")
    first, second = said["files"]
    assert seconds(second["begin"]) < seconds(first["end"]) < seconds(second["end"])
    path = tmp_path / "span.mp4"
    # This camera sends what it has kept.
    assert said["gaps"] == []
    span(daemon, "mp4", seconds(first["begin"]), seconds(second["end"]), path)
    shown = sorted(at for at, _, _ in packets(path))[:-3]  # of the last ones some are still to come
    assert shown == pytest.approx([0.1 * i for i in range(len(shown))], abs=0.03)
    assert media.decodes_cleanly(path)


def test_a_gap_inside_a_recording_that_begins_before_it_is_told(framelane, keyed_clip, tmp_path):
    """As one is that begins with the group before the gap."""
    outputs = {"rec": {"url": f"{tmp_path}/rec/%s.mkv"}}
    daemon = framelane(one_feed({"url": "rtsp://127.0.0.1:1/none", **IMPATIENT}, COPY, outputs)).wait_ready()
    (tmp_path / "rec").mkdir(exist_ok=True)
    begin = int(time.time()) - 60

    for name, at, *arguments in [
            (1, begin, "-c", "copy"),
            (2, begin + 2, "-vf", "setpts=PTS+gte(T\\,2.15)*8/TB", "-fps_mode", "passthrough", "-c:v", "libx264")]:
        told = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        media.ffmpeg("-i", keyed_clip, *arguments, "-metadata", f"creation_time={told}", tmp_path / "rec" / f"{name}.mkv")
    said = listed(daemon, "rec")
    assert [file["file"] for file in said["files"]] == ["1.mkv", "2.mkv"]
    gap = said["gaps"][0]
    assert seconds(gap["begin"]) == pytest.approx(begin + 4.2, abs=EXACT)
    assert gap["seconds"] == pytest.approx(8, abs=0.5)


def test_a_recording_that_a_kill_left_is_listed_and_sent(framelane, camera_clip, tmp_path):
    daemon = framelane(archive(camera_clip, tmp_path)).wait_ready()
    wait_until(lambda: len(listed(daemon, "mp4")["files"]) >= 2, "a recording")
    daemon.kill()
    daemon = framelane(archive(camera_clip, tmp_path)).wait_ready()
    wait_until(lambda: len(complete(daemon, "mp4")) >= 3, "recordings behind the kill")
    check_list(listed(daemon, "mp4"), tmp_path, "mp4")


def test_a_recording_of_which_only_the_name_tells_the_time(framelane, camera_clip, clip, tmp_path):
    """As an earlier version wrote them, and in the time zone in which it ran."""
    daemon = framelane(archive(camera_clip, tmp_path), env={"TZ": "Asia/Kolkata"}).wait_ready()
    begin = int(time.time()) - 3600
    local = time.gmtime(begin + 5.5 * 3600)
    file = time.strftime("%Y-%m-%d/%H%M%S.2.mp4", local)
    path = tmp_path / "mp4" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    media.ffmpeg("-i", clip, "-c", "copy", "-map_metadata", "-1", path)
    said = next(each for each in complete(daemon, "mp4") if each["file"] == file)
    assert seconds(said["begin"]) == begin
    assert seconds(said["end"]) == pytest.approx(begin + 4.2, abs=EXACT)


@pytest.fixture
def recorded(framelane, camera_clip, tmp_path):
    """(a daemon with some recordings, the first complete one)"""
    daemon = framelane(archive(camera_clip, tmp_path)).wait_ready()
    return daemon, wait_until(lambda: complete(daemon, "mp4"), "a recording")[0]["file"]


@pytest.mark.sanitizers
def test_a_recording_is_sent_whole_and_in_parts(recorded, tmp_path):
    daemon, file = recorded
    content = (tmp_path / "mp4" / file).read_bytes()
    size = len(content)
    address = f"cam/recordings/mp4/{file}"
    status, headers, body = daemon.ask_feed(address)
    assert (status, body) == (200, content)
    assert (headers["Content-Type"], headers["Accept-Ranges"]) == ("video/mp4", "bytes")
    assert headers["Content-Length"] == str(size)
    tag = headers["ETag"]
    for asked, first, last in [("bytes=0-99", 0, 99), ("bytes=100-", 100, size - 1), ("bytes=-7", size - 7, size - 1),
                               (f"bytes=5-{2 * size}", 5, size - 1), (f"bytes=-{2 * size}", 0, size - 1)]:
        status, headers, body = daemon.ask_feed(address, Range=asked, **{"If-Range": tag})
        assert (status, body) == (206, content[first:last + 1]), asked
        assert headers["Content-Range"] == f"bytes {first}-{last}/{size}"
    for asked in ("bytes=0-1,5-6", "bytes=5-1", "bytes=x", "lines=1-2"):
        assert daemon.ask_feed(address, Range=asked)[::2] == (200, content), asked
    assert daemon.ask_feed(address, Range="bytes=0-99", **{"If-Range": '"another"'})[::2] == (200, content)
    for asked in (f"bytes={size}-", "bytes=-0"):
        answer = daemon.ask_feed(address, Range=asked)
        assert refused(answer) == (416, "wrong_range", "Range")
        assert answer[1]["Content-Range"] == f"bytes */{size}"
    status, headers, body = daemon.ask_feed(address, method="HEAD")
    assert (status, headers["Content-Length"], headers["Accept-Ranges"], body) == (200, str(size), "bytes", b"")


def test_a_recording_that_is_still_written_is_sent_as_far_as_it_is(framelane, camera_clip, tmp_path):
    daemon = framelane(archive(camera_clip, tmp_path, segment="1h")).wait_ready()

    def part():
        return [(file, daemon.ask_feed(f"cam/recordings/mp4/{file['file']}")) for file in listed(daemon, "mp4")["files"]]

    (file, (status, _, body)), = wait_until(part, "a recording that is still written")
    assert not file["complete"] and status == 200 and len(body) >= file["bytes"]
    path = tmp_path / "part.mp4"
    path.write_bytes(body)
    assert media.frame_count(path) >= round((seconds(file["end"]) - seconds(file["begin"])) / FRAME)


def test_nothing_else_is_sent(recorded, tmp_path):
    daemon, file = recorded
    folder = tmp_path / "mp4"
    day = file.split("/")[0]
    (tmp_path / "secret").write_text("hush")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "111111.mp4").write_text("hush")
    (folder / day / "notes.mp4").write_text("hush")
    (folder / "2001-01-01").symlink_to(foreign)
    (folder / day / "000001.mp4").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / day / "000002.mp4")
    (folder / day / "000003.mp4.part").symlink_to(tmp_path / "secret")
    (folder / day / "000004.mp4").mkdir()
    (folder / "2024-02-30").mkdir()
    impossible = [f"{day}/250000.mp4", f"{day}/006100.mp4", "2024-02-30/000005.mp4"]
    for name in impossible:
        (folder / name).write_bytes((folder / file).read_bytes() + b"hush")
    for path in ("2001-01-01/111111.mp4", f"{day}/000001.mp4", f"{day}/000002.mp4", f"{day}/000003.mp4",
                 f"{day}/000003.mp4.part", f"{day}/000004.mp4", f"{day}/notes.mp4", "../secret", "../foreign/111111.mp4",
                 f"{day}/../../secret", "%2e%2e/secret", "..%2fsecret", f"{day}/%2e%2e/%2e%2e/secret", f"{day}//{file}",
                 f"/{tmp_path}/secret", f"{tmp_path}/secret", day, f"{day}/", "", ".", f"{file}/",
                 f"{day}/%31%31%31%31%31%31%2emp4", *impossible):
        answer = daemon.ask_feed(f"cam/recordings/mp4/{path}")
        assert answer[0] == 404 and b"hush" not in answer[2], path
    assert refused(daemon.ask_feed(f"cam/recordings/mp4/{file}%00.txt")) == (400, "wrong_parameter", None)
    assert refused(daemon.ask_feed("cam/recordings?output=mp4%00")) == (400, "wrong_parameter", "output")
    assert refused(daemon.ask_feed(f"cam/recordings/other/{file}")) == (404, "no_such_output", None)
    assert refused(daemon.ask_feed(f"yard/recordings/mp4/{file}"))[1] == "no_such_feed"
    # Nor is it listed, nor in a span.
    names = {each["file"] for each in listed(daemon, "mp4")["files"]}
    assert file in names and not names.intersection(impossible)
    assert not any(name.startswith(("2001", f"{day}/00000", f"{day}/notes")) for name in names)


@pytest.mark.sanitizers
def test_a_span_is_one_mp4_from_a_keyframe_on(framelane, camera_clip, tmp_path):
    daemon = framelane(archive(camera_clip, tmp_path, KINDS)).wait_ready()
    for kind in KINDS:
        files = wait_until(lambda: (found := complete(daemon, kind)) and len(found) >= 3 and found, "three recordings")
        wanted_from, wanted_to = seconds(files[0]["begin"]) + 0.5, seconds(files[2]["begin"]) + 0.3
        pictures = []
        for file in files:
            pictures += [(seconds(file["begin"]) + shown, seconds(file["begin"]) + decoded, key)
                         for shown, decoded, key in packets(tmp_path / kind / file["file"])]
        first = max(shown for shown, _, key in pictures if key and shown <= wanted_from + EXACT)
        expected = sorted(shown for shown, decoded, _ in pictures if shown > first - EXACT and decoded < wanted_to)
        path = tmp_path / "span.mp4"
        headers = span(daemon, kind, wanted_from, wanted_to, path)
        assert seconds(headers["X-Framelane-Begin"]) == pytest.approx(first, abs=EXACT)
        assert headers["Content-Type"] == "video/mp4" and f'filename="cam-{kind}-' in headers["Content-Disposition"]
        got = packets(path)
        # Only MP4 says when its pictures are to be decoded, and MPEG-TS not exactly when they were taken.
        assert got[0][2] and abs(len(got) - len(expected)) <= {"mp4": 0, "mkv": 2, "ts": 25}[kind]
        assert media.frame_count(path) == len(got)
        assert media.decodes_cleanly(path)
        if kind != "ts":
            shown = [first + at for at, _, _ in sorted(got)]
            assert shown == pytest.approx(expected[:len(shown)], abs=EXACT)


@pytest.fixture(scope="session")
def sound_clip(made, keyed_clip):
    """keyed_clip with sound."""
    return made("sound.mov", "-i", keyed_clip, "-f", "lavfi", "-i", "sine=440:duration=4.2", "-map", "0:v", "-map", "1:a",
                "-c:v", "copy", "-c:a", "pcm_s16le")


def test_a_span_over_everything_has_every_picture_and_the_sound_that_an_mp4_can_hold(
    framelane, sound_clip, tmp_path
):
    outputs = {"raw": ("raw", "mkv"), **{kind: ("aac", kind) for kind in KINDS}}
    feed = {"input": {"url": str(sound_clip), "pace": "realtime", "reconnect": {"first": "1h", "max": "1h"}},
            "encodes": {"raw": {"video": "copy", "audio": "copy"}, "aac": {"video": "copy", "audio": {"codec": "aac"}}},
            "outputs": {name: {"from": from_, "url": f"{tmp_path}/{name}/%H%M%S.{kind}", "segment": "2s"}
                        for name, (from_, kind) in outputs.items()}}
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    daemon.wait_log("sound.mov ended")
    daemon.stop()
    feed["input"] = {"url": "rtsp://127.0.0.1:1/none", **IMPATIENT}
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    now = time.time()
    path = tmp_path / "span.mp4"
    for output in outputs:
        headers = span(daemon, output, now - 60, now, path)
        assert media.frame_count(path) == 42
        assert media.decodes_cleanly(path)
        streams = media.probe(path)["streams"]
        if output == "raw":
            assert headers["X-Framelane-Left-Out"] == "pcm_s16le"
            assert [stream["codec_name"] for stream in streams] == ["h264"]
        else:
            assert "X-Framelane-Left-Out" not in headers
            assert [stream["codec_name"] for stream in streams] == ["h264", "aac"]
            # MPEG-TS tells the second; where it joins recordings, sound is left out or missing.
            assert [float(stream["duration"]) for stream in streams] == pytest.approx(
                [4.2, 4.2], abs=0.15 if output != "ts" else 1.2)


def test_a_span_that_one_mp4_cannot_be_is_refused_with_the_reason(framelane, clip, camera_clip, tmp_path):
    feed = {"input": {"url": str(clip)}, "encodes": {"ffv1": encoder("ffv1"), "main": x264()},
            "outputs": {"ffv1": {"from": "ffv1", "url": f"{tmp_path}/ffv1/%H%M%S.mkv"},
                        "main": {"from": "main", "url": f"{tmp_path}/main/%H%M%S.mkv", "segment": "2s"}}}
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    daemon.wait_state("cam", "ended")
    now = time.time()
    query = f"from={now - 60}&to={now}"
    answer = daemon.ask_feed(f"cam/recordings/ffv1.mp4?{query}")
    assert refused(answer) == (409, "not_in_mp4", None)
    ffv1, = listed(daemon, "ffv1")["files"]
    assert f"{ffv1['file']} ({ffv1['begin']} to {ffv1['end']})" in json.loads(answer[2])["error"]["message"]
    # A recording of another size, half a minute ago.
    other = tmp_path / "main" / "235959.mkv"
    media.ffmpeg("-i", camera_clip, "-t", "2", "-c", "copy", "-metadata",
                 f"creation_time={datetime.datetime.utcfromtimestamp(now - 30).isoformat()}Z", other)
    answer = daemon.ask_feed(f"cam/recordings/main.mp4?{query}")
    assert refused(answer) == (409, "format_changes", None)
    # The clip was read at once, so its recordings overlap.
    files = sorted(listed(daemon, "main")["files"], key=lambda each: each["begin"])
    changes = files[1]["begin"]
    assert f"changes at {changes}, from 235959.mkv to {files[1]['file']}" in json.loads(answer[2])["error"]["message"]
    span(daemon, "main", now - 60, seconds(changes), tmp_path / "span.mp4")
    assert media.frame_count(tmp_path / "span.mp4") == media.frame_count(other)


def test_wrong_requests_are_refused(recorded):
    daemon, file = recorded
    now = time.time()
    for path, expected in [
            ("cam/recordings?from=2&to=1", (400, "wrong_parameter", "from")),
            ("cam/recordings?from=1&to=1", (400, "wrong_parameter", "from")),
            ("cam/recordings?from=yesterday", (400, "wrong_parameter", "from")),
            ("cam/recordings?to=9e99", (400, "wrong_parameter", "to")),
            ("cam/recordings?from=1", (400, "wrong_parameter", "from")),
            ("cam/recordings?since=1", (400, "wrong_parameter", "since")),
            ("cam/recordings?output=none", (404, "no_such_output", "output")),
            ("yard/recordings", (404, "no_such_feed", "feeds.yard")),
            (f"cam/recordings/mp4.mp4?from={now - 10}", (400, "wrong_parameter", "to")),
            (f"cam/recordings/mp4.mp4?to={now}", (400, "wrong_parameter", "from")),
            (f"cam/recordings/mp4.mp4?from={now - 7 * 3600}&to={now}", (400, "wrong_parameter", "from")),
            (f"cam/recordings/mp4.mp4?from={now}&to={now - 1}", (400, "wrong_parameter", "from")),
            (f"cam/recordings/none.mp4?from={now - 10}&to={now}", (404, "no_such_output", None)),
            (f"cam/recordings/mp4.mp4?from={now - 3600}&to={now - 1800}", (404, "no_recording", None)),
            ("cam/recordings/mp4", (404, "not_found", None)),
            (f"cam/recordings/mp4/{file}?from=1", (400, "wrong_parameter", "from"))]:
        assert refused(daemon.ask_feed(path)) == expected, path
    assert daemon.ask_feed("cam/recordings", method="POST")[0] == 405


@pytest.mark.sanitizers
def test_a_client_that_goes_away_ends_what_is_read_for_it(recorded, tmp_path):
    daemon, file = recorded
    path = tmp_path / "mp4" / file
    large = path.with_name("000009.mp4")
    with open(large, "wb") as hole:
        hole.truncate(1 << 30)

    def readers():
        return daemon.thread_names().count("disk-reader")

    connections = [daemon.connect() for _ in range(3)]
    for connection in connections:
        connection.request("GET", f"/api/v1/feeds/cam/recordings/mp4/{file.split('/')[0]}/{large.name}")
        assert connection.getresponse().status == 200
    wait_until(lambda: readers() == 3, "a thread for each")
    for connection in connections:
        connection.close()
    wait_until(lambda: readers() == 0, "their threads to end")
    assert daemon.metrics().sum("framelane_threads_abandoned_total") == 0


def test_a_disk_that_hangs_holds_up_nothing_else(recorded, framelane, camera_clip, tmp_path):
    """It takes longer than a disk may: 10 s."""
    first, file = recorded
    first.stop()
    path = tmp_path / "mp4" / file
    (tmp_path / "other").mkdir()
    environment, hangs = preload(tmp_path, "hang")
    config = archive(camera_clip, tmp_path)
    config["feeds"]["other"] = archive(camera_clip, tmp_path / "other")["feeds"]["cam"]
    large = path.with_name("000009.mp4")
    with open(large, "wb") as hole:
        hole.truncate(64 << 20)
    os.utime(large, (1, 1))  # not for the list
    daemon = framelane(config, env={**environment, "FRAMELANE_TEST_HANG_READING": str(large)}).wait_ready()
    address = f"/api/v1/feeds/cam/recordings/mp4/{file.split('/')[0]}/{large.name}"
    download = daemon.connect()
    download.timeout = 30
    download.request("GET", address)
    response = download.getresponse()
    assert response.status == 200 and len(response.read(1000)) == 1000
    hangs.touch()
    try:
        got = 1000  # what had been read still comes, and then the connection ends
        while piece := response.read(1 << 16):
            got += len(piece)
        assert got < 64 << 20
        daemon.wait_log("feed cam: reading a file for a client hangs")
        assert daemon.metrics().one("framelane_threads_stuck") == 1
        assert refused(daemon.ask_feed("cam/recordings")) == (503, "no_answer", None)
        assert daemon.ask_feed("other/recordings")[0] == 200
        assert daemon.request("GET", "/healthz")[0] == 200
        daemon.stop(deadline=10)
    finally:
        hangs.unlink(missing_ok=True)
