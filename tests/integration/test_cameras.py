# Longer than 400 lines: each way in which a camera fails and comes back has its test, with the same cameras.
"""Cameras that die, freeze, refuse and come back: only the source is restarted."""

import json
import re
import time

import pytest

from harness import media
from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, beside_another, looped, one_feed, x264
from harness.media_playlist import MediaPlaylist
from harness.waiting import wait_until

TCP = {"options": {"rtsp_transport": "tcp"}}


def hls(tmp_path, **options):
    return {"hls": {"url": str(tmp_path / "live" / "index.m3u8"),
                    "options": {"hls_time": 1, "hls_list_size": 0, **options}}}


def segments(tmp_path):
    """The playlist's segment names, in order."""
    playlist = tmp_path / "live" / "index.m3u8"
    if not playlist.exists():
        return []
    return [line for line in playlist.read_text().splitlines() if line and line[0] != "#"]


def check_discontinuities(tmp_path):
    """There is one exactly where a segment with the outage in it would be longer than a segment may be."""
    playlist = MediaPlaylist((tmp_path / "live" / "index.m3u8").read_text())
    begins = [min(media.timestamps(tmp_path / "live" / segment.uri)) for segment in playlist.segments]
    longest = playlist.target + 0.5  # rounded, a duration may be the target duration
    said = [later.section > earlier.section
            for earlier, later in zip(playlist.segments, playlist.segments[1:])]
    assert said == [later - earlier > longest for earlier, later in zip(begins, begins[1:])], (
        begins, playlist.text)


@pytest.mark.sanitizers
def test_a_killed_camera_comes_back_to_the_same_playlist_and_encoder(
    framelane, camera, camera_clip, clip, tmp_path
):
    source = camera(camera_clip)
    daemon = framelane(beside_another(
        one_feed({"url": source.url, **TCP, **IMPATIENT}, x264(), hls(tmp_path)), clip))
    daemon.wait_ready().wait_frames("cam", 60)
    source.kill()
    daemon.wait_state("cam", "backoff")
    before = segments(tmp_path)
    assert before
    daemon.wait_more_frames("other", 5)
    down = daemon.metrics()
    source.start()
    daemon.wait_frames("cam", down.sum("framelane_frames_out_total", feed="cam") + 60)
    metrics = daemon.wait_state("cam", "running")
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") >= 1
    assert metrics.sum("framelane_feed_restarts_total", feed="cam") == 0
    assert metrics.sum("framelane_output_reconnects_total", feed="cam") == 0
    daemon.stop()
    assert metrics.sum("framelane_frames_dropped_total", feed="cam", reason="encoder") == 0
    assert daemon.log().count("feed cam: encode main:") == 1, "the encoder was opened again"
    check_discontinuities(tmp_path)
    after = segments(tmp_path)
    assert after[: len(before)] == before and len(after) > len(before)
    numbers = [int(re.search(r"(\d+)\.ts$", name).group(1)) for name in after]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_frozen_camera_is_noticed_and_resumed(framelane, camera, camera_clip, clip, transport):
    source = camera(camera_clip, transport=transport)
    input_ = {"url": source.url, "options": {"rtsp_transport": transport}, **IMPATIENT}
    config = beside_another(one_feed(input_), clip)
    daemon = framelane(config).wait_ready()
    before = daemon.wait_frames("cam", 10).sum("framelane_frames_in_total", feed="other")
    source.freeze()
    answers = []

    def noticed_twice(metrics):
        answers.append(daemon.feed("cam"))
        return (metrics.sum("framelane_source_reconnects_total", feed="cam", reason="timeout") >= 2
                and metrics.one("framelane_feed_up", feed="cam") == 0)

    metrics = daemon.wait_metrics(noticed_twice, "the frozen camera to be noticed, twice")
    assert metrics.feed_state("cam") in ("backoff", "connecting")
    assert all(answer["reason"] for answer in answers if answer["state"] != "running"), answers
    assert metrics.sum("framelane_frames_in_total", feed="other") > before
    assert metrics.one("framelane_feed_up", feed="other") == 1
    assert daemon.request("GET", "/healthz")[0] == 200
    assert daemon.request("GET", "/readyz")[0] == 200
    frozen = metrics.sum("framelane_frames_out_total", feed="cam")
    source.thaw()
    daemon.wait_frames("cam", frozen + 25)
    assert daemon.metrics().one("framelane_feed_up", feed="cam") == 1
    assert daemon.feed("cam")["reason"] is None


def test_the_reason_stays_while_a_dead_camera_is_tried_again(framelane, camera, camera_clip):
    source = camera(camera_clip)
    daemon = framelane(one_feed({"url": source.url, **TCP, **IMPATIENT})).wait_ready()
    daemon.wait_frames("cam", 5)
    source.kill()
    daemon.wait_state("cam", "backoff")
    lost = daemon.metrics().sum("framelane_source_reconnects_total", feed="cam")
    answers = []

    def tried_twice():
        answers.append(daemon.feed("cam"))
        reconnects = daemon.metrics().sum("framelane_source_reconnects_total", feed="cam")
        return reconnects >= lost + 2

    wait_until(tried_twice, "two more tries")
    assert {answer["state"] for answer in answers} <= {"backoff", "connecting"}
    assert all(answer["reason"] for answer in answers), answers
    source.start()
    daemon.wait_state("cam", "running")
    assert daemon.feed("cam")["reason"] is None


def test_every_change_of_state_is_logged_with_the_feed_it_is_of(
    framelane, camera, camera_clip, clip, made, tmp_path
):
    source = camera(camera_clip)
    input_ = {"url": source.url, **TCP, "reconnect": {"first": "100ms", "max": "300ms"}}
    recording = made("streamable.ts", "-i", clip, "-c", "copy").read_bytes()
    (tmp_path / "out.ts.part").write_bytes(recording)
    codecs = [{"name": "h264_nvenc"}, {"name": "libx264", "options": {"preset": "ultrafast"}}]
    daemon = framelane({"log": {"format": "json"}, "feeds": {
        "encoded": {"input": input_, "encodes": {"main": {"video": {"codec": codecs}}},
                 "outputs": {"file": {"url": str(tmp_path / "out.ts")}}},
        "copied": {"input": input_, "encodes": {"main": COPY},
                 "outputs": {"none": {"url": "null:"}}},
    }}).wait_ready()

    def wait_both(state):
        daemon.wait_metrics(lambda m: {m.feed_state(f) for f in ("encoded", "copied")} == {state},
                            f"both to be {state}")

    wait_both("running")
    source.kill()
    wait_both("backoff")
    source.start()
    wait_both("running")
    daemon.stop()
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    of_the_daemon = ("framelane ", "converting on ", "admin listener ", "ready", "SIGTERM",
                     "stopped", "ffmpeg: ")
    assert not [line["msg"] for line in lines
                if "feed" not in line and not line["msg"].startswith(of_the_daemon)]
    assert {line["level"] for line in lines if line["msg"].startswith("running")} == {"info"}
    said = {feed: [line["msg"] for line in lines if line.get("feed") == feed]
            for feed in ("encoded", "copied")}
    for feed, messages in said.items():
        running = [message for message in messages if message.startswith("running")]
        assert len(running) == 2, messages
        assert running[0] == "running (h264 320x240)"
        assert re.fullmatch(r"running again after \d+ failed tr(y|ies) \(h264 320x240\)", running[1])
        assert any("trying again in" in message for message in messages), feed
    for what, start in (({"encode": "main"}, "using libx264, because h264_nvenc"), ({}, "video is 320x240"),
                        ({"output": "file"}, "recovered ")):
        about = {"feed": "encoded", **what}.items()
        assert any(about <= line.items() and line["msg"].startswith(start) for line in lines), start


def test_a_frozen_camera_does_not_hold_up_a_stop(framelane, camera, camera_clip):
    source = camera(camera_clip)
    daemon = framelane(one_feed({"url": source.url, **TCP, "timeout": "30s"})).wait_ready()
    daemon.wait_frames("cam", 10)
    source.freeze()
    daemon.stop(deadline=5)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_stop_takes_leave_of_the_camera(framelane, camera, camera_clip, transport):
    """Otherwise the camera keeps the session, and cameras allow only a few."""
    source = camera(camera_clip, transport=transport)
    daemon = framelane(
        one_feed({"url": source.url, "options": {"rtsp_transport": transport}})).wait_ready()
    daemon.wait_state("cam", "running")
    assert daemon.stop() == 0
    wait_until(lambda: source.farewells() == 1, "the camera to hear of it")


def test_a_wrong_password_shows_as_auth(framelane, camera, camera_clip, clip):
    source = camera(camera_clip, auth="digest")
    url = source.url.replace("rtsp://", "rtsp://view.er%40site:wr0ng-w0rd@")
    daemon = framelane(beside_another(one_feed({"url": url, **TCP, **IMPATIENT}), clip),
                       secrets=["wr0ng-w0rd"])
    metrics = daemon.wait_ready().wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="auth") >= 1,
        "a reconnect because of auth",
    )
    assert metrics.sum("framelane_frames_in_total", feed="cam") == 0
    daemon.wait_state("cam", "backoff")
    assert "401" in daemon.feed("cam")["reason"]
    assert "401" in daemon.log()
    daemon.wait_more_frames("other", 5)


def test_a_refused_port_shows_as_refused(framelane, clip):
    url = f"rtsp://127.0.0.1:{free_port()}/stream"
    config = beside_another(one_feed({"url": url, **TCP, **IMPATIENT}), clip)
    daemon = framelane(config).wait_ready()
    daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="refused") >= 2,
        "two reconnects because of a refusal",
    )
    daemon.wait_state("cam", "backoff")
    assert "refused" in daemon.feed("cam")["reason"].lower()
    daemon.wait_more_frames("other", 5)


def test_the_same_fault_is_logged_once_and_then_counted(framelane, camera, camera_clip):
    source = camera(camera_clip)
    source.kill()
    input_ = {"url": source.url, **TCP, "reconnect": {"first": "20ms", "max": "20ms"}}
    daemon = framelane(one_feed(input_)).wait_ready()
    daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="refused") >= 20,
        "20 reconnects",
    )
    lines = [line for line in daemon.log().splitlines() if "refused" in line.lower()]
    assert len(lines) == 1, "\n".join(lines)
    source.start()
    metrics = daemon.wait_state("cam", "running")
    tries = metrics.sum("framelane_source_reconnects_total", feed="cam")
    daemon.wait_log(f"feed cam: running again after {tries:.0f} failed tries")


def test_what_a_camera_sends_amiss_later_is_no_configuration_error(framelane, clip, tmp_path):
    """Correct frames, then frames with a colour matrix that framelane does not convert."""
    good, odd, both = (tmp_path / name for name in ("good.ts", "odd.ts", "both.ts"))
    media.ffmpeg("-i", clip, "-frames:v", 10, "-c", "copy", "-f", "mpegts", good)
    media.ffmpeg("-i", clip, "-frames:v", 10, "-c", "copy", "-output_ts_offset", 1, "-bsf:v",
                 "h264_metadata=matrix_coefficients=8", "-f", "mpegts", odd)
    both.write_bytes(good.read_bytes() + odd.read_bytes())
    daemon = framelane(one_feed({"url": str(both), "pace": "realtime", **IMPATIENT})).wait_ready()

    def came_back_twice(metrics):
        return metrics.one("framelane_source_reconnects_total", feed="cam", reason="decode") >= 2

    metrics = daemon.wait_metrics(came_back_twice, "two reconnects")
    assert metrics.one("framelane_frames_out_total", feed="cam", encode="main") >= 10
    assert "ycgco" in daemon.log()


def test_a_name_that_cannot_be_resolved_shows_as_dns(framelane):
    # The name is too long, so that no name server is asked.
    url = f"rtsp://{'a' * 64}.invalid/stream"
    daemon = framelane(one_feed({"url": url, **TCP, **IMPATIENT})).wait_ready()
    daemon.wait_metrics(
        lambda m: m.sum("framelane_source_reconnects_total", feed="cam", reason="dns") >= 1,
        "a reconnect because of the name",
    )


HTTP_STREAMS = {  # the content type, and ffmpeg's arguments
    "mpjpeg": ("multipart/x-mixed-replace;boundary=ffmpeg", ["-c:v", "mjpeg", "-t", "2"]),
    "mpegts": ("video/mp2t", ["-c:v", "copy"]),
    "flv": ("video/x-flv", ["-c:v", "copy", "-flvflags", "no_duration_filesize"]),
}


@pytest.mark.parametrize("kind", HTTP_STREAMS)
def test_an_http_camera_that_closes_is_connected_to_again(framelane, http_camera, clip, kind):
    content_type, arguments = HTTP_STREAMS[kind]
    source = http_camera(media.ffmpeg("-stream_loop", "3", "-i", clip, *arguments, "-f", kind, "-"),
                         content_type)
    reconnect = {"reconnect": {"first": "1s", "max": "1s"}}
    daemon = framelane(one_feed({"url": source.url, **reconnect})).wait_ready()
    metrics = daemon.wait_state("cam", "backoff")
    assert metrics.sum("framelane_frames_in_total", feed="cam") > 0
    source.stay()
    metrics = daemon.wait_state("cam", "running")
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") >= 1
    assert metrics.sum("framelane_feed_restarts_total", feed="cam") == 0


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_file_over_http_ends(framelane, http_camera, made, clip, framing):
    """A file is recognised by its length or, without one, by the duration in its header."""
    first = made("index-first.mp4", "-i", clip, "-c", "copy", "-movflags", "+faststart")
    source = http_camera(first.read_bytes(), "application/octet-stream", framing)
    daemon = framelane(one_feed({"url": source.url})).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    assert metrics.one("framelane_frames_out_total", feed="cam", encode="main") == 42
    assert metrics.sum("framelane_source_reconnects_total", feed="cam") == 0


def test_a_camera_that_is_switched_on_later_is_found(framelane, camera, camera_clip):
    source = camera(camera_clip)
    source.kill()
    daemon = framelane(one_feed({"url": source.url, **TCP, **IMPATIENT})).wait_ready()
    daemon.wait_state("cam", "backoff")
    source.start()
    daemon.wait_frames("cam", 10)


def test_timestamps_go_on_forwards_when_a_camera_starts_anew(
    framelane, camera, camera_clip, tmp_path
):
    source = camera(camera_clip)
    record = tmp_path / "record.ts"  # its time base is 90 kHz; Matroska would round to milliseconds
    daemon = framelane(
        one_feed({"url": source.url, **TCP, **IMPATIENT}, x264(), {"file": {"url": str(record)}})
    ).wait_ready()
    daemon.wait_frames("cam", 30)
    source.kill()
    daemon.wait_state("cam", "backoff")
    source.start()
    count = daemon.metrics().sum("framelane_frames_out_total", feed="cam") + 30
    daemon.wait_frames("cam", count)
    daemon.stop()
    times = media.timestamps(record, "dts_time")
    assert len(times) >= count
    assert all(a < b for a, b in zip(times, times[1:]))
    assert media.decodes_cleanly(record)


def test_a_cameras_first_frames_are_as_far_apart_as_the_others(
    framelane, camera, camera_clip, tmp_path
):
    """The first RTP packets have no timestamps yet, and they come in decoding order."""
    record = tmp_path / "record.ts"
    daemon = framelane(
        one_feed({"url": camera(camera_clip).url, **TCP}, x264(), {"file": {"url": str(record)}})
    ).wait_ready()
    daemon.wait_frames("cam", 25)
    daemon.stop()
    times = media.timestamps(record)[:20]
    # On a busy machine frames of a camera may be dropped, so a gap may be several whole frames.
    frames = [(b - a) * 25 for a, b in zip(times, times[1:])]
    assert all(round(gap) >= 1 and abs(gap - round(gap)) < 0.1 for gap in frames), times


@pytest.mark.parametrize("video", ["h264", "h265"])
def test_a_cameras_copied_frames_are_as_far_apart_as_it_took_them(
    framelane, camera, camera_clip, hevc_clip, tmp_path, video
):
    """Also the first ones. HEVC is recorded with the tag that players want."""
    clip = camera_clip if video == "h264" else hevc_clip
    record = tmp_path / "record.mp4"
    daemon = framelane(one_feed({"url": camera(clip, video=video).url, **TCP}, COPY,
                                {"file": {"url": str(record)}})).wait_ready()
    daemon.wait_metrics(
        lambda m: m.sum("framelane_output_bytes_total", feed="cam") > 20_000, "20 kB recorded")
    daemon.stop()
    assert media.video(record)["codec_tag_string"] == {"h264": "avc1", "h265": "hvc1"}[video]
    times = media.timestamps(record)[:12]
    camera_times = media.timestamps(clip)[:12]
    assert [round(25 * (time - times[0])) for time in times] == [
        round(25 * (time - camera_times[0])) for time in camera_times]


@pytest.mark.parametrize("audio", ["alaw", "aac"])
def test_the_cameras_own_streams_are_recorded_untouched(
    framelane, camera, made, camera_clip, tmp_path, audio
):
    sound = {"alaw": ["-c:a", "pcm_alaw", "-ar", "8000"], "aac": ["-c:a", "aac", "-ar", "16000"]}
    clip = made(f"camera-{audio}.mov", "-i", camera_clip, "-f", "lavfi", "-i", "sine=frequency=440",
                "-map", "0:v", "-map", "1:a", "-c:v", "copy", *sound[audio], "-ac", "1", "-t", "20")
    source = camera(clip, audio=audio)
    record = tmp_path / "record.mkv"
    daemon = framelane(one_feed({"url": source.url, **TCP}, {**COPY, "audio": "copy"},
                                {"file": {"url": str(record)}})).wait_ready()
    daemon.wait_metrics(
        lambda m: m.sum("framelane_output_bytes_total", feed="cam") > 120_000, "120 kB recorded"
    )
    daemon.stop()
    streams = {s["codec_type"]: s["codec_name"] for s in media.probe(record)["streams"]}
    assert streams == {"video": "h264", "audio": {"alaw": "pcm_alaw", "aac": "aac"}[audio]}
    assert media.frame_count(record) > 25


def test_a_copied_feed_is_not_decoded(framelane, camera, camera_clip, tmp_path):
    source = camera(camera_clip)
    daemon = framelane(one_feed({"url": source.url, **TCP}, COPY, hls(tmp_path))).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_output_bytes_total", feed="cam") > 100_000, "100 kB recorded"
    )
    assert metrics.one("framelane_feed_up", feed="cam") == 1
    # Nothing is decoded, so the series does not exist. It is not 0.
    assert not metrics.series("framelane_frames_in_total", feed="cam")
    steps = metrics.series("framelane_stage_duration_seconds_count", feed="cam")
    assert [labels["stage"] for labels, _ in steps] == ["mux"]
    assert not daemon.feed("cam")["decoder"]
    # Main, admin, supervisor, source, output and a few of libraries, but no decoder threads.
    assert daemon.threads() <= 10


@pytest.mark.sanitizers
def test_one_dead_camera_among_sixteen_feeds_is_not_noticed_by_the_others(framelane, clip):
    feeds = {
        f"cam-{n}": {"input": looped(clip), "encodes": {"main": x264(gop="2s")}} for n in range(15)
    }
    feeds["dead"] = {"input": {"url": f"rtsp://127.0.0.1:{free_port()}/", **IMPATIENT}}
    daemon = framelane({"feeds": feeds}).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: all(
            m.sum("framelane_frames_out_total", feed=f"cam-{n}") >= 20 for n in range(15)
        ),
        "20 frames of each of 15 feeds",
        deadline=60,
    )
    assert metrics.one("framelane_feed_up", feed="dead") == 0
    assert all(metrics.one("framelane_feed_up", feed=f"cam-{n}") == 1 for n in range(15))
    assert {feed["name"] for feed in daemon.api("/api/v1/feeds")["feeds"]} == set(feeds)
    start = time.monotonic()
    daemon.stop()
    assert time.monotonic() - start < 15
