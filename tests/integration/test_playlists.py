"""HLS playlists, held against RFC 8216 (harness/media_playlist.py) while they change."""

import itertools
import json
import os
import re
import subprocess

import pytest

from harness import media, media_playlist
from harness.configs import COPY, IMPATIENT, looped, one_feed, x264
from harness.waiting import wait_until


def hls(path, **options):
    return {"hls": {"url": str(path), "reconnect": {"first": "100ms", "max": "100ms"},
                    "options": {"hls_time": 1, **options}}}


def last_number(path):
    if not path.is_file():
        return -1
    playlist = media_playlist.read(path)
    return playlist.first_number + len(playlist.segments) - 1


def wait_segments(daemon, path, number):
    def come():
        daemon.check_playlists()
        return last_number(path) >= number
    wait_until(come, f"segment {number}", 30)


@pytest.fixture(scope="session")
def small_clip(made, camera_clip):
    """What the camera sends after a change of its format."""
    return made("camera-small.mov", "-i", camera_clip, "-t", "20", "-vf", "scale=160:120", "-c:v",
                "libx264", "-preset", "ultrafast", "-g", "25")


def test_a_change_of_format_has_a_discontinuity_that_stays_counted(
    framelane, camera, camera_clip, small_clip, tmp_path
):
    """The discontinuity scrolls out of a playlist of two segments."""
    source = camera(camera_clip)
    playlist = tmp_path / "hls" / "index.m3u8"
    daemon = framelane(one_feed(
        {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}, COPY,
        hls(playlist, hls_list_size=2))).wait_ready()
    wait_segments(daemon, playlist, 1)
    source.kill()
    source.start(small_clip)
    wait_until(lambda: "#EXT-X-DISCONTINUITY\n" in playlist.read_text(), "a discontinuity", 20)
    seen = media_playlist.read(playlist)
    first, last = seen.segments[0], seen.segments[-1]
    wait_segments(daemon, playlist, last.number + 2)
    after = media_playlist.read(playlist)
    assert after.first_section == first.section + 1
    daemon.stop()
    media.close_playlist(playlist)
    assert media.video(playlist)["width"] == 160
    assert media.decodes_cleanly(playlist)
    listed = {segment.uri for segment in after.segments}
    assert listed <= {path.name for path in playlist.parent.iterdir()}


def test_a_change_of_format_has_an_init_segment_of_its_own(
    framelane, camera, camera_clip, small_clip, tmp_path
):
    source = camera(camera_clip)
    playlist = tmp_path / "hls" / "index.m3u8"
    daemon = framelane(one_feed(
        {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}, COPY,
        hls(playlist, hls_list_size=0, hls_segment_type="fmp4"))).wait_ready()
    wait_segments(daemon, playlist, 1)
    source.kill()
    source.start(small_clip)
    wait_until(lambda: "#EXT-X-DISCONTINUITY\n" in playlist.read_text(), "a discontinuity", 20)
    wait_segments(daemon, playlist, last_number(playlist) + 1)
    daemon.stop()
    written = media_playlist.read(playlist)
    # FFmpeg's own reader of playlists keeps to the first init segment: each stretch is read alone.
    widths = []
    for init, segments in itertools.groupby(written.segments, lambda segment: segment.init):
        stretch = tmp_path / f"of-{init}"
        parts = [init, *(segment.uri for segment in segments)]
        stretch.write_bytes(b"".join((playlist.parent / part).read_bytes() for part in parts))
        assert media.decodes_cleanly(stretch)
        widths.append(media.video(stretch)["width"])
    assert widths == [320, 160]


def test_a_folder_that_is_removed_does_not_set_numbers_back(framelane, keyed_clip, tmp_path):
    playlist = tmp_path / "hls" / "index.m3u8"
    daemon = framelane(one_feed(looped(keyed_clip), COPY, hls(playlist, hls_list_size=2))).wait_ready()
    wait_segments(daemon, playlist, 1)
    before = last_number(playlist)
    playlist.parent.rename(tmp_path / "removed")  # all at once, while the daemon writes
    wait_until(lambda: last_number(playlist) >= 0, "the playlist to come back", 20)
    assert media_playlist.read(playlist).first_number > before
    daemon.stop()


def test_the_target_duration_stays_when_keyframes_get_rarer(framelane, made, clip, tmp_path):
    """Two seconds between keyframes, then ten: segments end without one, before they get too long."""
    video = ("-i", clip, "-vf", "scale=160:120", "-c:v", "libx264", "-preset", "ultrafast",
             "-sc_threshold", "0", "-force_key_frames", "0,1,2,13", "-g", "1000")
    rare = made("rare-keyframes.ts", "-stream_loop", "3", *video)
    playlist = tmp_path / "hls" / "index.m3u8"
    daemon = framelane(one_feed({"url": str(rare)}, COPY, hls(playlist, hls_list_size=0)),
                       arguments=["--once"])
    assert daemon.wait_exit() == 0
    written = media_playlist.read(playlist)
    assert written.target == 1 and written.ended
    assert len(written.segments) > 10
    keyframes = [i for i, segment in enumerate(written.segments)
                 if media.probe(playlist.parent / segment.uri, "-show_packets", "-read_intervals",
                                "%+#1")["packets"][0]["flags"].startswith("K")]
    assert len(keyframes) == 4  # a keyframe begins a segment, also after segments without one
    assert media.frame_count(playlist) == media.frame_count(rare)


def test_two_daemons_do_not_write_one_playlist(framelane, keyed_clip, tmp_path):
    playlist = tmp_path / "hls" / "index.m3u8"
    config = one_feed(looped(keyed_clip), COPY, hls(playlist))
    one = framelane(config, folder=tmp_path / "one").wait_ready()
    wait_segments(one, playlist, 0)
    two = framelane(config, folder=tmp_path / "two").wait_ready()
    two.wait_metrics(lambda m: m.sum("framelane_output_reconnects_total") > 0, "it to be refused")
    host = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    assert f"process {one.process.pid} on {host} writes it" in two.feed("cam")["outputs"]["hls"]["reason"]
    one.stop()
    two.wait_metrics(lambda m: m.one("framelane_output_up", feed="cam", output="hls") == 1,
                     "the other to go on")
    two.stop()
    assert not list(playlist.parent.glob(".*.lock"))


def test_a_playlist_with_an_impossible_number_begins_anew(framelane, keyed_clip, tmp_path):
    playlist = tmp_path / "hls" / "index.m3u8"
    playlist.parent.mkdir()
    playlist.write_text("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n"
                        "#EXT-X-MEDIA-SEQUENCE:18446744073709551615\n#EXTINF:1.0,\nindex-7.ts\n")
    daemon = framelane(one_feed(looped(keyed_clip), x264(), hls(playlist)))
    daemon.wait_ready()
    daemon.wait_log("is no playlist that can be continued")
    wait_until(lambda: "index-0.ts" in playlist.read_text(), "a new playlist")
    daemon.stop()


@pytest.mark.parametrize("recordings, options", [
    ("cam-%s.ts", {}), ("cam-%Y.m4s", {}), ("cam-init-%s.mp4", {}),
    ("cam7.ts", {"hls_segment_filename": "{folder}/cam%d.ts"})])
def test_check_refuses_a_playlist_that_would_delete_recordings(cli, tmp_path, recordings, options):
    config = one_feed({"url": "rtsp://127.0.0.1/"}, COPY, {
        "record": {"url": str(tmp_path / recordings), "format": "mpegts"},
        "hls": {"url": str(tmp_path / "cam.m3u8"),
                "options": {name: text.format(folder=tmp_path) for name, text in options.items()}}})
    (tmp_path / "f.yaml").write_text(json.dumps(config, indent=1))
    done = cli("check", "-c", tmp_path / "f.yaml")
    assert done.returncode == 78
    assert ('the playlist of output "hls" of feed "cam" would delete files of output "record"'
            in done.stderr)


@pytest.mark.parametrize("character", ["#", "?", "%", '"', ":"])
def test_no_playlist_has_names_that_players_read_differently(cli, clip, tmp_path, character):
    done = cli("transcode", "--quiet", clip, tmp_path / f"out{character}1.m3u8", "--codec", "copy")
    assert done.returncode == 1, done.stderr
    assert f"names segments with the character {character}" in done.stderr
    assert not list(tmp_path.iterdir())


def test_players_find_segments_by_names_with_spaces_and_accents(cli, clip, tmp_path):
    playlist = tmp_path / "caméra 1.m3u8"
    done = cli("transcode", "--quiet", clip, playlist, "--codec", "copy")
    assert done.returncode == 0, done.stderr
    assert media.frame_count(playlist) == 42


@pytest.mark.parametrize("name", ["out-0.ts", "out-7.ts", "out-init-3.mp4"])
def test_transcode_deletes_and_overwrites_no_segment_unasked(cli, clip, tmp_path, name):
    out, precious = tmp_path / "out.m3u8", tmp_path / name
    precious.write_text("precious")
    arguments = ["transcode", "--quiet", clip, out, "--codec", "copy"]
    done = cli(*arguments)
    assert done.returncode == 1, done.stderr
    assert f"{precious} exists" in done.stderr and "-y" in done.stderr
    assert precious.read_text() == "precious"
    assert not out.exists()
    done = cli(*arguments, "-y")
    assert done.returncode == 0, done.stderr
    assert not precious.is_file() or precious.read_bytes() != b"precious"
    assert media.frame_count(out) == 42


def test_a_playlist_of_mp4_goes_on_with_mpeg_ts_alone(framelane, clip, tmp_path):
    """An EXT-X-MAP holds up to the next one, and cannot be taken back."""
    playlist = tmp_path / "hls" / "index.m3u8"
    last = -1
    for kind in ("fmp4", "mpegts"):
        daemon = framelane(one_feed({"url": str(clip)}, x264(), hls(playlist, hls_segment_type=kind)),
                           folder=tmp_path / kind).wait_ready()
        # Another configuration may write another version: a new watch begins with its playlist.
        wait_until(lambda: last_number(playlist) > last, "a segment of this configuration")
        daemon.wait_state("cam", "ended")
        daemon.stop()
        written = media_playlist.read(playlist)
        assert written.first_number == last + 1
        last = last_number(playlist)
    assert all(segment.init is None for segment in written.segments)
    assert len(list(playlist.parent.glob("*.m4s"))) <= 1  # for slow readers
    media.close_playlist(playlist)
    assert media.frame_count(playlist) == 42


def test_what_a_continued_playlist_names_stays_if_it_is_not_its_own(framelane, clip, tmp_path):
    playlist = tmp_path / "hls" / "index.m3u8"
    playlist.parent.mkdir()
    others = [str(tmp_path / "archive" / "index-1.ts"), "../index-2.ts", "holiday.mp4"]
    (tmp_path / "archive").mkdir()
    playlist.write_text("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n"
                        + "".join(f"#EXTINF:1.0,\n{uri}\n" for uri in others))
    for uri in others:
        (playlist.parent / uri).write_text("precious")
    daemon = framelane(one_feed({"url": str(clip)}, x264(), hls(playlist, hls_list_size=1,
                                                                hls_delete_threshold=0))).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert len(media_playlist.read(playlist).segments) == 1
    assert all((playlist.parent / uri).read_text() == "precious" for uri in others)


# What docs/configuration.md lists.
KNOWN = {"hls_time", "hls_list_size", "hls_segment_type", "hls_segment_filename", "hls_base_url",
         "hls_delete_threshold", "hls_playlist_type", "start_number", "hls_flags"}


def test_every_other_option_of_ffmpegs_playlists_is_refused_with_a_reason(cli, tmp_path):
    listed = subprocess.run(["ffmpeg", "-v", "error", "-h", "muxer=hls"], capture_output=True,
                            text=True, check=True).stdout
    options = set(re.findall(r"^  -(\w+) ", listed, re.MULTILINE))
    assert KNOWN < options
    config = one_feed({"url": "rtsp://127.0.0.1/"}, COPY, hls(tmp_path / "index.m3u8"))
    config["feeds"]["cam"]["outputs"]["hls"]["options"] = {name: "1" for name in options - KNOWN}
    (tmp_path / "f.yaml").write_text(json.dumps(config, indent=1))
    done = cli("check", "-c", tmp_path / "f.yaml")
    assert done.returncode == 78
    refused = re.findall(r"outputs\.hls\.options\.(\w+): is refused: .*[;,] \w+", done.stderr)
    assert set(refused) == options - KNOWN, done.stderr


def test_every_other_flag_of_ffmpegs_playlists_is_refused_with_a_reason(cli, tmp_path):
    listed = subprocess.run(["ffmpeg", "-v", "error", "-h", "muxer=hls"], capture_output=True,
                            text=True, check=True).stdout
    flags = set(re.findall(r"^     (\w+) +E\.+", listed.split("-hls_flags")[1].split("  -")[0],
                           re.MULTILINE))
    known = {"delete_segments", "independent_segments", "program_date_time", "temp_file",
             "append_list", "omit_endlist"}
    assert known < flags
    config = {"feeds": {flag: {"input": {"url": "rtsp://127.0.0.1/"}, "outputs": {
        "hls": {"url": f"{tmp_path}/{flag}.m3u8", "options": {"hls_flags": f"+{flag}"}}}}
        for flag in flags}}
    (tmp_path / "f.yaml").write_text(json.dumps(config, indent=1))
    done = cli("check", "-c", tmp_path / "f.yaml")
    refused = re.findall(r"hls_flags: has the flag (\w+), which is refused: .*; \w+", done.stderr)
    assert set(refused) == flags - known, done.stderr


def test_independent_segments_begin_at_keyframes_and_keep_the_target(framelane, made, camera_clip,
                                                                    tmp_path):
    """A camera that sends a picture every four seconds at night."""
    clip = made("slow.mov", "-i", camera_clip, "-t", "16", "-vf", "select='lt(t,3)+not(mod(n,100))'",
                "-vsync", "vfr", "-c:v", "libx264", "-preset", "ultrafast")
    playlist = tmp_path / "hls" / "index.m3u8"
    daemon = framelane(one_feed(
        {"url": str(clip), "pace": "realtime"}, x264(gop="1500ms"),
        hls(playlist, hls_list_size=0, hls_flags="+independent_segments"))).wait_ready()
    wait_segments(daemon, playlist, 0)
    assert media_playlist.read(playlist).target == 2
    wait_segments(daemon, playlist, 4)
    daemon.stop()
    written = media_playlist.read(playlist)
    assert "EXT-X-INDEPENDENT-SEGMENTS" in written.tags
    for segment in written.segments:
        flags = media.probe(playlist.parent / segment.uri, "-select_streams", "v", "-show_entries",
                              "packet=flags")["packets"]
        assert flags[0]["flags"].startswith("K"), segment.uri


def test_a_segment_that_cannot_be_deleted_is_logged_once_and_tried_again(framelane, keyed_clip,
                                                                        tmp_path):
    """It belongs to another user, and so does the folder, which keeps such files from others."""
    if os.geteuid() != 0:
        pytest.skip("giving a file to another user needs root")
    playlist = tmp_path / "hls" / "index.m3u8"
    capabilities = "-dac_override,-dac_read_search,-fowner"
    daemon = framelane(one_feed(looped(keyed_clip), COPY, hls(playlist, hls_list_size=3)), wrapper=(
        "setpriv", f"--inh-caps={capabilities}", f"--bounding-set={capabilities}")).wait_ready()
    wait_segments(daemon, playlist, 0)
    os.chown(playlist.parent, 1, 1)
    playlist.parent.chmod(0o1777)
    number = last_number(playlist)
    segments = [playlist.parent / media_playlist.read(playlist).segments[-1].uri]
    os.chown(segments[0], 1, 1)
    wait_segments(daemon, playlist, number + 1)
    segments.append(playlist.parent / media_playlist.read(playlist).segments[-1].uri)
    os.chown(segments[1], 1, 1)
    wait_segments(daemon, playlist, number + 8)
    assert all(path.exists() for path in segments)
    assert daemon.log().count("cannot delete ") == 1, daemon.log()
    assert f"output hls: cannot delete {segments[0]}: Operation not permitted" in daemon.log()
    for path in segments:
        os.chown(path, 0, 0)
    wait_until(lambda: not any(path.exists() for path in segments), "them to be deleted", 20)
    daemon.stop()
