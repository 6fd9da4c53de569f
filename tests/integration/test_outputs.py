"""Other programs can play every kind of output, while it is written and afterwards."""

import pytest

from harness import media
from harness.configs import COPY, beside_another, encoder, looped, one_feed, raw_input, x264
from harness.waiting import wait_until


def record_clip(framelane, clip, outputs, encode=None):
    """Runs the clip to its end and stops the daemon."""
    daemon = framelane(one_feed({"url": str(clip)}, encode, outputs)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    daemon.stop()
    return metrics


@pytest.mark.sanitizers
@pytest.mark.parametrize("name, format_", [("out.mp4", "mp4"), ("out.mkv", "matroska"),
                                           ("out.ts", "mpegts")])
def test_file_holds_every_frame(framelane, clip, tmp_path, name, format_):
    path = tmp_path / name
    record_clip(framelane, clip, {"file": {"url": str(path)}})
    assert format_ in media.probe(path)["format"]["format_name"]
    assert media.frame_count(path) == 42
    times = media.timestamps(path, "dts_time")
    assert all(a < b for a, b in zip(times, times[1:]))
    assert media.decodes_cleanly(path)
    assert not list(tmp_path.glob("*.part"))


def test_folders_of_an_output_are_made(framelane, clip, tmp_path):
    path = tmp_path / "a" / "b" / "out.mkv"
    record_clip(framelane, clip, {"file": {"url": str(path)}})
    assert media.frame_count(path) == 42


def test_names_are_expanded_per_feed_and_output(framelane, clip, tmp_path):
    record_clip(framelane, clip, {"file": {"url": f"{tmp_path}/${{feed}}-${{output}}.mkv"}})
    assert (tmp_path / "cam-file.mkv").exists()


def test_mp4_is_fragmented(framelane, clip, tmp_path):
    path = tmp_path / "out.mp4"
    record_clip(framelane, clip, {"file": {"url": str(path)}})
    data = path.read_bytes()
    assert 0 < data.find(b"moov") < data.find(b"moof")


def test_a_file_plays_while_it_is_written(framelane, camera_clip, tmp_path):
    paths = [tmp_path / f"out.{suffix}" for suffix in ("mp4", "mkv", "ts")]
    daemon = framelane(one_feed(looped(camera_clip), x264(), {
        path.suffix[1:]: {"url": str(path)} for path in paths})).wait_ready()
    daemon.wait_frames("cam", 60)
    for path in paths:
        part = tmp_path / f"{path.name}.part"
        assert part.exists() and not path.exists()
        wait_until(lambda: part.stat().st_size > 0 and media.frame_count(part) >= 25,
                   f"a second of {path.name} to be playable")


def test_an_existing_file_is_never_overwritten(framelane, clip, tmp_path):
    path = tmp_path / "out.mkv"
    path.write_text("precious")
    record_clip(framelane, clip, {"file": {"url": str(path)}})
    assert path.read_text() == "precious"
    others = [other for other in tmp_path.glob("out*") if other != path]
    assert len(others) == 1 and media.frame_count(others[0]) == 42


def test_copied_packets_keep_their_timestamps_and_bytes(framelane, clip, tmp_path):
    path = tmp_path / "out.mkv"
    record_clip(framelane, clip, {"file": {"url": str(path)}}, COPY)
    expected = media.timestamps(clip)
    start = min(expected)
    actual = media.timestamps(path)
    assert len(actual) == len(expected)
    offset = min(actual) - start
    assert all(abs(a - offset - b) < 0.002 for a, b in zip(actual, expected))
    assert media.decoded(path) == media.decoded(clip)


def test_b_frames_come_out_in_presentation_order(framelane, clip, tmp_path):
    path = tmp_path / "out.mkv"
    encode = encoder("libx264", gop="2s", preset="veryfast", bf=3)
    record_clip(framelane, clip, {"file": {"url": str(path)}}, encode)
    stream = media.video(path, "-count_frames")
    assert stream["has_b_frames"] > 0 and int(stream["nb_read_frames"]) == 42
    times = sorted(media.timestamps(path))
    assert all(abs(b - a - 0.1) < 0.002 for a, b in zip(times, times[1:]))


def test_segments_start_at_keyframes_and_hold_every_frame(framelane, keyed_clip, tmp_path):
    record_clip(framelane, keyed_clip, {"rec": {"url": f"{tmp_path}/rec/%Y-%m-%d/%H%M%S.mp4",
                                             "segment": "1s"}}, COPY)
    files = sorted((tmp_path / "rec").rglob("*"), key=lambda p: p.stat().st_mtime_ns)
    files = [path for path in files if path.is_file()]
    assert all(path.name.endswith(".mp4") or ".mp4" in path.name for path in files)
    assert not [path for path in files if path.name.endswith(".part")]
    assert 4 <= len(files) <= 5
    counts = []
    for path in files:
        packets = media.probe(path, "-show_packets")["packets"]
        assert "K" in packets[0]["flags"], path
        counts.append(media.frame_count(path))
    assert sum(counts) == 42


def test_segments_beyond_keep_are_deleted(framelane, camera_clip, tmp_path):
    daemon = framelane(
        one_feed(looped(camera_clip), x264(gop="200ms"),
                 {"rec": {"url": f"{tmp_path}/rec/%H%M%S.ts", "segment": "200ms",
                          "keep": {"size": "20k"}}})
    ).wait_ready()
    daemon.wait_metrics(
        lambda m: m.sum("framelane_output_bytes_total", feed="cam") > 80_000, "80 kB written"
    )
    daemon.stop()
    kept = [path.stat().st_size for path in (tmp_path / "rec").iterdir()]
    # The limit, the segment that exceeded it, and the one that was written last.
    assert sum(kept) < 20_000 + 2 * max(kept)


@pytest.mark.sanitizers
def test_hls_is_a_live_window_and_old_segments_are_deleted(framelane, keyed_clip, tmp_path):
    playlist = tmp_path / "hls" / "index.m3u8"
    # The file is read as fast as possible and in a loop, for many segments in a short time.
    daemon = framelane(
        one_feed({"url": str(keyed_clip), "loop": True}, x264(),
                 {"hls": {"url": str(playlist), "options": {"hls_time": 1, "hls_list_size": 3}}})
    ).wait_ready()

    def first_number():
        lines = playlist.read_text().splitlines() if playlist.exists() else []
        numbers = [line.split(":")[1] for line in lines if "MEDIA-SEQUENCE" in line]
        return int(numbers[0]) if numbers else 0

    wait_until(lambda: first_number() >= 10, "ten segments to have gone by")
    files = [path for path in playlist.parent.iterdir() if path.suffix == ".ts"]
    assert len(files) <= 3 + 1 + 3  # listed; being written; kept by the muxer for slow readers
    daemon.stop()
    media.close_playlist(playlist)
    assert media.decodes_cleanly(playlist)
    assert media.frame_count(playlist) >= 20


def test_raw_output_is_the_decoded_frames(framelane, clip, tmp_path):
    path = tmp_path / "out.yuv"
    record_clip(framelane, clip, {"raw": {"url": str(path), "format": "rawvideo"}},
                encoder("rawvideo"))
    assert path.read_bytes() == media.decoded(clip)


def test_null_output_counts_and_writes_nothing(framelane, clip, tmp_path):
    metrics = record_clip(framelane, clip, {"out": {"url": "null:"}})
    assert metrics.one("framelane_frames_out_total", feed="cam", encode="main") == 42
    assert {path.name for path in tmp_path.iterdir()} == {
        "framelane.yaml", "framelane.log"} | ({"admin.sock"} & {p.name for p in tmp_path.iterdir()})


def test_a_playlist_is_over_only_when_the_daemon_runs_once(framelane, clip, tmp_path):
    """Without --once the playlist stays open, because the daemon continues it after a restart."""
    for arguments, over in (((), False), (("--once",), True)):
        folder = tmp_path / str(over)
        playlist = folder / "hls" / "index.m3u8"
        daemon = framelane(one_feed({"url": str(clip)}, x264(), {"hls": {"url": str(playlist)}}),
                           folder=folder, arguments=arguments)
        if over:
            assert daemon.wait_exit() == 0
        else:
            daemon.wait_ready().wait_state("cam", "ended")
            daemon.stop()
        assert ("#EXT-X-ENDLIST" in playlist.read_text()) == over


@pytest.mark.sanitizers
def test_one_source_feeds_several_encodes_and_outputs(framelane, clip, tmp_path):
    feed = {
        "input": {"url": str(clip)},
        "encodes": {"main": COPY, "live": x264(), "lossless": encoder("ffv1")},
        "outputs": {
            "copy": {"from": "main", "url": str(tmp_path / "copy.mkv")},
            "mp4": {"from": "live", "url": str(tmp_path / "live.mp4")},
            "hls": {"from": "live", "url": str(tmp_path / "hls" / "index.m3u8")},
            "ffv1": {"from": "lossless", "url": str(tmp_path / "lossless.mkv")},
        },
    }
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    media.close_playlist(tmp_path / "hls" / "index.m3u8")
    for name in ("copy.mkv", "live.mp4", "hls/index.m3u8", "lossless.mkv"):
        assert media.frame_count(tmp_path / name) == 42, name
    assert media.decoded(tmp_path / "lossless.mkv") == media.decoded(clip)


@pytest.mark.parametrize("codec, name, held", [
    ("aac", "out.mp4", True), ("aac", "index.m3u8", True),
    ("pcm_alaw", "out.mkv", True), ("pcm_alaw", "index.m3u8", False)])
def test_audio_is_copied_only_where_the_container_really_holds_it(
    framelane, made, clip, tmp_path, codec, name, held
):
    source = made(f"audio-{codec}.mkv", "-i", clip, "-f", "lavfi", "-i",
                  "sine=frequency=440:sample_rate=8000", "-map", "0:v", "-map", "1:a", "-c:v",
                  "copy", "-c:a", codec, "-ac", "1", "-shortest")
    path = tmp_path / "out" / name
    daemon = framelane(
        one_feed({"url": str(source)}, {**x264(), "audio": "copy"}, {"out": {"url": str(path)}})
    ).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    if path.suffix == ".m3u8":
        media.close_playlist(path)
    kinds = {s["codec_type"]: s["codec_name"] for s in media.probe(path)["streams"]}
    assert kinds["video"] == "h264"
    assert kinds.get("audio") == (codec if held else None)
    warnings = [line for line in daemon.log().splitlines() if codec in line and "audio" in line]
    assert len(warnings) == (0 if held else 1), daemon.log()
    assert held or "audio: {codec: aac} in encode main" in warnings[0]


def test_outputs_of_one_encode_may_want_its_headers_apart_or_not(framelane, clip, tmp_path):
    """The encoder makes them once. MP4 stores them in its header; elementary streams have none."""
    names = {"mpeg4": ["a.mp4", "a.ts", "a.avi"], "libx264": ["b.mkv", "b.ts", "b.h264"]}
    feed = {"input": {"url": str(clip)},
            "encodes": {"mpeg4": encoder("mpeg4"), "libx264": x264()},
            "outputs": {name.replace(".", "-"): {"from": codec, "url": str(tmp_path / name)}
                        for codec, files in names.items() for name in files}}
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    for name in sum(names.values(), []):
        assert media.frame_count(tmp_path / name) == 42, name


def test_the_first_available_codec_is_used(framelane, clip):
    video = {"codec": [{"name": "h264_nvenc"}, {"name": "libx264",
                                                "options": {"preset": "ultrafast"}}]}
    daemon = framelane(one_feed({"url": str(clip)}, {"video": video})).wait_ready()
    daemon.wait_state("cam", "ended")
    assert daemon.feed("cam")["encodes"]["main"]["codec"] == "libx264"


@pytest.mark.sanitizers
@pytest.mark.parametrize("codec, options", [("mjpeg", {"threads": 16}), ("ffv1", {"threads": 16}),
                                            ("rawvideo", {})])
def test_an_encoder_that_holds_many_frames_does_not_exhaust_a_small_ring(
    framelane, clip, codec, options
):
    config = one_feed({"url": "lavfi:testsrc2=size=320x240:rate=30:duration=4"},
                      encoder(codec, **options), ring=2)
    daemon = framelane(beside_another(config, clip)).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    assert metrics.one("framelane_frames_out_total", feed="cam", encode="main") == 120
    daemon.wait_more_frames("other", 5)


def test_raw_bgra_at_two_encodes_is_converted_once_for_each(framelane, bgra, tmp_path):
    feed = {
        "input": raw_input(bgra, "bgra", "64x48"),
        "encodes": {"live": x264(), "same": encoder("rawvideo")},
        "outputs": {"same": {"from": "same", "url": str(tmp_path / "same.raw"),
                             "format": "rawvideo"},
                    "live": {"from": "live", "url": str(tmp_path / "live.mp4")}},
    }
    daemon = framelane({"feeds": {"cam": feed}}).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert (tmp_path / "same.raw").read_bytes() == bgra.read_bytes()
    stream = media.video(tmp_path / "live.mp4")
    assert stream["pix_fmt"].startswith("yuv4")
    assert (stream["color_space"], stream["color_range"]) == ("bt709", "tv")


def test_the_headers_of_h264_are_in_an_mpeg_program_stream(cli, clip, tmp_path):
    out = tmp_path / "out.mpg"
    done = cli("transcode", clip, out, "--codec", "libx264")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(out) == media.frame_count(clip)
    assert media.decodes_cleanly(out)
