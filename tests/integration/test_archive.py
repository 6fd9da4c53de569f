"""An archive tells the time: each recorded picture shows when it was taken (harness/clock.py)."""

import calendar
import datetime
import re
import struct
import time

import pytest

from harness import clock, media
from harness.configs import COPY, IMPATIENT, x264
from harness.waiting import wait_until

EXACT = 0.1  # seconds
NTP_EPOCH = 2208988800  # of 1900, in seconds before 1970


@pytest.fixture
def clock_pictures(made):
    return made("clock.h264", *clock.ARGUMENTS)


@pytest.fixture
def clock_camera(camera, clock_pictures):
    """A camera whose pictures show the time."""
    return camera(clock_pictures, clock=0)


def archive_of(camera, folder, split_after, timeout="1s", **outputs):
    """A feed that records the camera as it comes and encoded."""
    files = {name: {"from": from_, "url": f"{folder}/{name}/%Y%m%d-%H%M%S.{kind}"}
             for name, (from_, kind) in {"copied": ("copy", "mkv"), "encoded": ("main", "mp4")}.items()}
    return {"feeds": {"cam": {
        "input": {"url": camera.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT,
                  "timeout": timeout},
        "on_gap": {"split_after": split_after},
        # The encoder holds some pictures when the camera is gone.
        "encodes": {"copy": COPY, "main": x264(gop="1s", preset="medium", **{"rc-lookahead": 10})},
        "outputs": {**files, **outputs}}}}


def files_in(folder):
    return sorted(folder.iterdir()) if folder.exists() else []


def complete(folder, count):
    """True if there are so many files, and none is still written."""
    names = files_in(folder)
    return len(names) == count and not any(name.suffix == ".part" for name in names)


def begin_of_mkv(path):
    text = media.probe(path)["format"]["tags"]["creation_time"]
    whole, fraction = re.fullmatch(r"(.*)\.(\d+)Z", text).groups()
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + fraction)


def begin_of_mp4(path):
    """From the first ProducerReferenceTimeBox, which says the rest of the header's second."""
    data = path.read_bytes()
    at = data.index(b"prft")
    seconds, fraction = struct.unpack(">II", data[at + 12 : at + 20])
    begin = seconds - NTP_EPOCH + fraction / 2**32
    header = media.probe(path)["format"]["tags"]["creation_time"]
    assert calendar.timegm(time.strptime(header[:19], "%Y-%m-%dT%H:%M:%S")) == int(begin)
    return begin


def check_pictures(path, begin, from_first=False):
    """Each picture lies where it was taken. Returns the times of all. `from_first`: timestamps count from
    the first one."""
    shown = clock.read(media.decoded(path, "gray"))
    stamps = sorted(media.timestamps(path))
    times = [begin + at - (stamps[0] if from_first else 0) for at in stamps]
    assert shown and len(shown) == len(times)
    wrong = [(at, clock.apart(at, taken)) for at, taken in zip(times, shown)
             if clock.apart(at, taken) > EXACT]
    assert not wrong, (path.name, begin, wrong)
    return times


def check_recording(path):
    begin = begin_of_mkv(path) if path.suffix == ".mkv" else begin_of_mp4(path)
    assert path.stem == time.strftime("%Y%m%d-%H%M%S", time.localtime(begin))
    return check_pictures(path, begin)


def begins_of_segments(playlist):
    """(path, its EXT-X-PROGRAM-DATE-TIME)"""
    for said, name in re.findall(r"#EXT-X-PROGRAM-DATE-TIME:(\S+)\n(?:#.*\n)*([^#\n]+)",
                                 playlist.read_text()):
        yield playlist.parent / name, datetime.datetime.fromisoformat(said).timestamp()


def longest_gap(times):
    return max(later - earlier for earlier, later in zip(times, times[1:]))


def test_a_recording_ends_with_its_source_and_the_next_tells_when_it_came_back(
    framelane, clock_camera, tmp_path
):
    playlist = tmp_path / "live" / "index.m3u8"
    hls = {"from": "copy", "url": str(playlist), "options": {
        "hls_time": 1, "hls_list_size": 0, "hls_flags": "+program_date_time"}}
    daemon = framelane(archive_of(clock_camera, tmp_path, "1s", hls=hls)).wait_ready()
    recordings = [tmp_path / "copied", tmp_path / "encoded"]
    daemon.wait_more_frames("cam", 30)
    clock_camera.kill()
    for folder in recordings:
        wait_until(lambda: complete(folder, 1), "the recording to be complete while it is gone")
    clock_camera.start()
    daemon.wait_more_frames("cam", 40)
    daemon.stop()
    for folder in recordings:
        times = [check_recording(path) for path in files_in(folder)]
        assert len(times) == 2
        assert times[1][0] - times[0][-1] > 1
        assert all(longest_gap(each) < 0.2 for each in times)
    segments = [check_pictures(path, begin, from_first=True)
                for path, begin in begins_of_segments(playlist)]
    assert len(segments) == playlist.read_text().count("#EXTINF") > 2
    gaps = [later[0] - earlier[-1] for earlier, later in zip(segments, segments[1:])]
    assert sum(gap > 1 for gap in gaps) == playlist.read_text().count("#EXT-X-DISCONTINUITY\n") == 1


def test_a_short_outage_is_a_gap_in_the_file(framelane, clock_camera, tmp_path):
    daemon = framelane(archive_of(clock_camera, tmp_path, "30s")).wait_ready()
    daemon.wait_more_frames("cam", 30)
    clock_camera.kill()
    daemon.wait_metrics(lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= 5,
                        "a second to go by")
    clock_camera.start()
    daemon.wait_more_frames("cam", 40)
    daemon.stop()
    for folder in (tmp_path / "copied", tmp_path / "encoded"):
        assert complete(folder, 1)
        assert longest_gap(check_recording(files_in(folder)[0])) > 0.4


def flap(daemon, camera, folder, is_long):
    """The camera goes away and comes back, after more than split_after if `is_long`. Its recordings are in
    `folder`."""
    tries = daemon.wait_more_frames("cam", 15).sum("framelane_source_reconnects_total", feed="cam")
    camera.kill()
    if is_long:
        recordings = [folder / "copied", folder / "encoded"]
        # A file that is renamed while the folder is read may be seen under both names.
        ended = max(len({name.name.removesuffix(".part") for name in files_in(each)}) for each in recordings)
        wait_until(lambda: all(complete(each, ended) for each in recordings), "complete recordings")
    else:
        daemon.wait_metrics(
            lambda m: m.sum("framelane_source_reconnects_total", feed="cam") >= tries + 3,
            "half a second to go by")
    camera.start()


def test_the_recordings_of_a_camera_that_flaps_are_right_to_the_end(framelane, clock_camera, tmp_path):
    daemon = framelane(archive_of(clock_camera, tmp_path, "2s")).wait_ready()
    for is_long in (False, True, False, False, True):
        flap(daemon, clock_camera, tmp_path, is_long)
    daemon.wait_more_frames("cam", 15)
    daemon.stop()
    for name in ("copied", "encoded"):
        times = [check_recording(path) for path in files_in(tmp_path / name)]
        # On a slow machine a short outage may be a long one.
        assert 3 <= len(times) < 6
        assert all(later[0] - earlier[-1] > 1 for earlier, later in zip(times, times[1:]))
        assert any(longest_gap(each) > 0.2 for each in times)


def test_the_playlists_of_a_camera_that_flaps_tell_the_time_to_the_end(framelane, clock_camera, tmp_path):
    playlists = {from_: tmp_path / f"hls-{from_}" / "index.m3u8" for from_ in ("copy", "main")}
    outputs = {f"hls-{from_}": {"from": from_, "url": str(url), "options": {
        "hls_time": 1, "hls_list_size": 0, "hls_flags": "+program_date_time"}}
        for from_, url in playlists.items()}
    daemon = framelane(archive_of(clock_camera, tmp_path, "2s", **outputs)).wait_ready()
    for is_long in (False, True, False, True, False, False):
        flap(daemon, clock_camera, tmp_path, is_long)
    daemon.wait_more_frames("cam", 15)
    daemon.stop()
    for playlist in playlists.values():
        segments = [check_pictures(path, begin, from_first=True)
                    for path, begin in begins_of_segments(playlist)]
        assert len(segments) == playlist.read_text().count("#EXTINF") > 5
        times = sum(segments, [])
        # On a slow machine a short outage may be a long one.
        gaps = [later - earlier for earlier, later in zip(times, times[1:]) if later - earlier > 0.2]
        assert sum(gap > 2 for gap in gaps) >= 2 and any(gap < 2 for gap in gaps), gaps


def test_what_a_camera_sends_again_is_recorded_once(framelane, camera, clock_pictures, tmp_path):
    source = camera(clock_pictures, clock=4)
    daemon = framelane(archive_of(source, tmp_path, "30s")).wait_ready()
    daemon.wait_more_frames("cam", 80)
    source.kill()
    daemon.wait_state("cam", "backoff")
    source.start()
    daemon.wait_more_frames("cam", 40)
    metrics = daemon.metrics()
    daemon.stop()
    assert metrics.sum("framelane_timestamp_repairs_total", feed="cam") == 0
    # The camera had kept what was sent while it was away: no picture is missing, and none is there twice. But
    # a machine that is slower than the burst drops pictures, and counts them.
    encoded = check_recording(files_in(tmp_path / "encoded")[0])
    dropped = metrics.sum("framelane_frames_dropped_total", feed="cam", reason="ring_full")
    assert longest_gap(encoded) < 0.06 + 0.04 * dropped
    assert min(later - earlier for earlier, later in zip(encoded, encoded[1:])) > 0.02
    # A copy can go on only from the next keyframe.
    assert longest_gap(check_recording(files_in(tmp_path / "copied")[0])) < 1


def test_a_camera_that_is_silent_is_gone_though_it_is_connected(framelane, clock_camera, tmp_path):
    daemon = framelane(archive_of(clock_camera, tmp_path, "1s", timeout="30s")).wait_ready()
    daemon.wait_more_frames("cam", 50)
    clock_camera.freeze()
    recordings = [tmp_path / "copied", tmp_path / "encoded"]
    for folder in recordings:
        wait_until(lambda: complete(folder, 1), "the recording to be complete")
    clock_camera.thaw()
    metrics = daemon.wait_more_frames("cam", 80)
    daemon.stop()
    assert daemon.log().count(": running") == 1
    times = {}
    for folder in recordings:
        assert complete(folder, 2)
        times[folder.name] = [check_recording(path) for path in files_in(folder)]
    # The camera goes on in the middle of a group, and the copy's second file begins with all of it.
    assert metrics.sum("framelane_output_packets_dropped_total", feed="cam", output="copied") == 0
    assert longest_gap(sorted(sum(times["copied"], []))) < 0.1
