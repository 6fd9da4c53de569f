# Longer than 400 lines: all tests make renditions and compare them by the same functions.
"""Renditions that belong together: one output over several encodes, with a master playlist."""

import copy

import pytest

from harness import browser, media, media_playlist
from harness.configs import ALL_WHITE, IMPATIENT, looped, x264
from harness.daemon import ROOT
from harness.preload import preload
from harness.waiting import wait_until

SIZES = {"p240": (320, 240), "p180": (240, 180), "p120": (160, 120)}


AAC = {"codec": "aac"}


@pytest.fixture(scope="session")
def loud_clip(made, clip):
    """The clip as 25 frames/s, with a tone: 12 s."""
    return made("renditions-sound.mp4", "-stream_loop", "-1", "-i", clip, "-f", "lavfi", "-i",
                "sine=frequency=440:sample_rate=48000", "-t", "12", "-c:v", "libx264", "-preset",
                "ultrafast", "-vf", "scale=320:240,fps=25", "-g", "25", "-c:a", "aac")


def encode(size, **options):
    return {**x264(**options), "convert": {"size": f"{size[0]}x{size[1]}"}}


WITH_SOUND = [*SIZES, "audio"]


def renditions(input_, folder, encodes=None, options=None, sound=None):
    encodes = encodes or {name: encode(size) for name, size in SIZES.items()}
    if sound:  # the second encode's
        name = list(encodes)[1]
        encodes = {**encodes, name: {**encodes[name], "audio": sound}}
    return {"feeds": {"cam": {"input": input_, "encodes": encodes, "outputs": {"web": {
        "from": list(encodes), "url": str(folder / "master.m3u8"),
        "reconnect": {"first": "100ms", "max": "100ms"},
        "options": {"hls_time": 1, "hls_list_size": 0, **(options or {})}}}}}}


def read(folder, names=SIZES):
    return {name: media_playlist.read(folder / name / "index.m3u8") for name in names
            if (folder / name / "index.m3u8").is_file()}


def wait_segments(daemon, folder, number, names=SIZES):
    """Until every rendition has the segment of this number."""
    def come():
        daemon.check_playlists()
        lists = read(folder, names)
        return len(lists) == len(names) and all(
            any(s.number >= number and not s.gap for s in one.segments) for one in lists.values())
    wait_until(come, f"segment {number} in all renditions", 40)


def first_pts(path):
    return min(media.timestamps(path))


def require_aligned(folder, names=SIZES):
    """Segments of the same number show the same time. Returns the numbers that all renditions have."""
    lists = read(folder, names)
    by_number = {name: {s.number: s for s in one.segments if not s.gap}
                 for name, one in lists.items()}
    common = sorted(set.intersection(*(set(one) for one in by_number.values())))
    assert common
    last = {name: max(one) for name, one in by_number.items()}
    for number in common:
        segments = {name: one[number] for name, one in by_number.items()}
        for name, segment in segments.items():  # the same name, whatever the encode
            assert segment.uri == f"index-{number}.ts"
        assert len({s.section for s in segments.values()}) == 1, number
        assert len({s.time for s in segments.values()}) == 1, number
        starts = {round(first_pts(folder / name / s.uri), 3) for name, s in segments.items()}
        assert max(starts) - min(starts) < 0.002, (number, starts)
        if number + 1 in common and all(number < one for one in last.values()):
            durations = {s.duration for s in segments.values()}
            whole = all(s.section == by_number[name][number + 1].section
                        for name, s in segments.items())
            assert not whole or max(durations) - min(durations) < 0.002, (number, durations)
    return common


def close(folder, names=SIZES):
    for name in names:
        media.close_playlist(folder / name / "index.m3u8")


@pytest.mark.asan  # ThreadSanitizer is too slow for a source at its own rate
def test_renditions_are_cut_at_the_same_times_and_a_master_playlist_names_them(
    framelane, camera_clip, tmp_path
):
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(camera_clip), folder)).wait_ready()
    wait_segments(daemon, folder, 3)
    feed, metrics = daemon.feed("cam"), daemon.metrics()
    assert list(feed["outputs"]) == ["web"]
    assert feed["outputs"]["web"]["state"] == "running"
    assert metrics.one("framelane_output_up", output="web") == 1
    in_files = sum(path.stat().st_size for path in folder.glob("*/*.ts"))
    assert metrics.one("framelane_output_bytes_total", output="web") >= in_files > 0
    daemon.stop()
    assert len(require_aligned(folder)) >= 2  # all four, unless the machine is too slow for the source
    master = media_playlist.read_master(folder / "master.m3u8")
    assert [v.uri for v in master.variants] == [f"{name}/index.m3u8" for name in SIZES]
    assert [v.size for v in master.variants] == list(SIZES.values())
    assert {v.rate for v in master.variants} == {25.0}
    for variant in master.variants:
        playlist = folder / variant.uri
        stream = media.video(playlist)
        assert variant.codecs[0].startswith("avc1.")
        assert int(variant.codecs[0][-2:], 16) == stream["level"]
        of = [(playlist.parent / s.uri).stat().st_size * 8 / s.duration
              for s in media_playlist.read(playlist).segments if s.duration > 0.5]
        assert variant.bandwidth >= max(of[:3])
    close(folder)
    for name, size in SIZES.items():
        assert media.decodes_cleanly(folder / name / "index.m3u8")
        assert media.video(folder / name / "index.m3u8")["width"] == size[0]
    assert len(media.probe(folder / "master.m3u8")["streams"]) == 3


def test_renditions_of_encoders_with_different_delays_are_cut_at_the_same_times(
    framelane, camera_clip, tmp_path
):
    """One has B-frames and looks ahead for a second, one delivers at once."""
    encodes = {"slow": encode((320, 240), preset="veryfast", bf=3, **{"rc-lookahead": 25}),
               "fast": encode((160, 120), tune="zerolatency")}
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(camera_clip), folder, encodes)).wait_ready()
    wait_segments(daemon, folder, 3, encodes)
    daemon.stop()
    assert len(require_aligned(folder, encodes)) >= 4
    for one in read(folder, encodes).values():
        assert "#EXT-X-DISCONTINUITY\n" not in one.text
        assert not any(s.gap for s in one.segments)


def packets(path):
    """The times of all pictures of a segment and of the keyframes."""
    shown = media.probe(path, "-f", "mpegts", "-show_packets", "-select_streams", "v:0")["packets"]
    times = [(round(float(packet["pts_time"]), 3), packet["flags"]) for packet in shown]
    return [time for time, _ in times], [time for time, flags in times if flags.startswith("K")]


def test_a_rendition_of_a_lower_rate_has_the_keyframes_of_the_others(framelane, camera_clip, tmp_path):
    """Of 10 or 5 frames a second, the nearest one to a multiple of 900 ms often comes before it."""
    rates = {"all": 25, "ten": 10, "five": 5}
    encodes = {name: encode((160, 120), gop="900ms") for name in rates}
    for name in ("ten", "five"):
        encodes[name]["convert"]["rate"] = rates[name]
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(camera_clip), folder, encodes,
                                  options={"hls_time": 0.5})).wait_ready()
    wait_segments(daemon, folder, 3, encodes)
    daemon.stop()
    for number in require_aligned(folder, encodes)[:4]:
        shown = {name: packets(folder / name / f"index-{number}.ts") for name in rates}
        keyframes = shown["all"][1]
        assert len(keyframes) == 1
        for name, (times, keys) in shown.items():
            assert keys == keyframes, (number, name)
            assert len(times) <= 0.9 * rates[name] + 1, (number, name)


def test_a_source_with_fewer_pictures_than_segments_leaves_gaps_alone(framelane, made, camera_clip, tmp_path):
    """Two pictures a second, in segments of 200 ms. Nothing begins anew, and the log says what to do."""
    slow = made("renditions-slow.mp4", "-stream_loop", "-1", "-i", camera_clip, "-t", "20", "-vf",
                "fps=2,scale=320:240", "-c:v", "libx264", "-preset", "ultrafast")
    encodes = {name: encode(SIZES[name], gop="200ms", tune="zerolatency") for name in ("p240", "p120")}
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(slow), folder, encodes, options={"hls_time": 0.2})).wait_ready()
    wait_segments(daemon, folder, 14, encodes)
    daemon.stop()
    assert len(require_aligned(folder, encodes)) >= 4
    for name, one in read(folder, encodes).items():
        assert any(s.gap for s in one.segments)
        assert "#EXT-X-DISCONTINUITY\n" not in one.text
        lines = [line for line in daemon.log().splitlines() if f"output web ({name}): no picture" in line]
        assert len(lines) == 1 and "set options: {hls_time: 1}" in lines[0]


def test_old_segments_leave_all_renditions(framelane, camera_clip, tmp_path):
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(camera_clip), folder,
                                  options={"hls_list_size": 2})).wait_ready()
    wait_segments(daemon, folder, 5)
    daemon.stop()
    for name, one in read(folder).items():
        assert len(one.segments) == 2
        assert len(list((folder / name).glob("*.ts"))) <= 3


def test_a_restart_goes_on_in_the_same_playlists(framelane, camera_clip, tmp_path):
    folder = tmp_path / "web"
    config = renditions(looped(camera_clip), folder)
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    wait_segments(daemon, folder, 2)
    daemon.stop()
    before = read(folder)
    daemon = framelane(config, folder=tmp_path / "again").wait_ready()
    next_number = max(one.segments[-1].number for one in before.values()) + 1
    wait_segments(daemon, folder, next_number + 1)
    daemon.stop()
    require_aligned(folder)
    for name, one in read(folder).items():
        one.require_follows(before[name])
        assert one.segments[-1].section == 1


def test_a_feed_that_is_started_again_goes_on_in_the_same_playlists(framelane, camera_clip, tmp_path):
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(camera_clip), folder)).wait_ready()
    wait_segments(daemon, folder, 1)
    daemon.restart_feed("cam")
    wait_until(lambda: all(one.segments[-1].section == 1 for one in read(folder).values()),
               "a second section in all renditions", 20)
    number = max(one.segments[-1].number for one in read(folder).values())
    wait_segments(daemon, folder, number + 1)
    assert daemon.metrics().sum("framelane_output_reconnects_total", output="web") == 0
    daemon.stop()
    require_aligned(folder)


def test_a_rendition_whose_encode_was_down_comes_back_at_the_same_times(
    framelane, camera, camera_clip, cif_clip, tmp_path
):
    """A new format opens the encoders again, and one of them does not get its threads for a while. What is
    masked shows in no segment."""
    environment, file = preload(tmp_path, "shortage")
    encodes = {"p240": encode((320, 240), threads=1), "p120": encode((160, 120), threads=2)}
    source = camera(camera_clip)
    folder = tmp_path / "web"
    config = renditions(
        {"url": source.url, "options": {"rtsp_transport": "tcp", "threads": 1}, **IMPATIENT},
        folder, encodes)
    config["feeds"]["cam"]["mask"] = ALL_WHITE
    daemon = framelane(config, env=environment).wait_ready()
    wait_segments(daemon, folder, 2, encodes)
    source.kill()
    file.write_text("threads")
    source.start(cif_clip)
    daemon.wait_metrics(lambda m: m.sum("framelane_frames_dropped_total", encode="p120",
                                        reason="encoder") >= 10, "frames to be dropped")
    alone = read(folder, ["p240"])["p240"].segments[-1].number
    wait_segments(daemon, folder, alone + 2, ["p240"])  # this one goes on
    file.unlink()
    back = read(folder, ["p240"])["p240"].segments[-1].number
    wait_segments(daemon, folder, back + 4, encodes)
    daemon.stop()
    common = require_aligned(folder, encodes)
    lists = read(folder, encodes)
    gaps = [s.number for s in lists["p120"].segments if s.gap]
    assert gaps and max(common) > max(gaps) and min(common) < min(gaps)
    for one in lists.values():  # the tag stands where p120 begins again, in both
        assert [s.section for s in one.segments if s.number == max(gaps) + 1] == [
            s.section for s in lists["p120"].segments if s.number == max(gaps) + 1]
    segments = list(folder.glob("*/*.ts"))
    assert len(segments) > 10 and min(media.darkest(path) for path in segments) > 200


def test_a_rendition_that_never_works_leaves_the_others_playable(framelane, camera_clip, tmp_path):
    encodes = {"good": encode((320, 240)), "small": encode((160, 120)),
               "bad": {**encode((240, 180)), "overlay": [{"image": str(tmp_path / "missing.png")}]}}
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(camera_clip), folder, encodes)).wait_ready()
    wait_segments(daemon, folder, 3, ["good", "small"])
    wait_until((folder / "master.m3u8").is_file, "the master playlist", 10)
    metrics = daemon.metrics()
    assert metrics.one("framelane_output_up", output="web") == 0
    feed = daemon.feed("cam")
    assert feed["outputs"]["web"]["state"] == "connecting"
    assert feed["outputs"]["web"]["reason"] == f"waits for encode bad: {feed['encodes']['bad']['reason']}"
    daemon.stop()
    master = media_playlist.read_master(folder / "master.m3u8")
    assert [v.uri for v in master.variants] == ["good/index.m3u8", "small/index.m3u8"]


def kinds(path):
    return [s["codec_type"] for s in media.probe(path)["streams"]]


@pytest.mark.parametrize("container", ["mpegts", "fmp4"])
def test_sound_is_written_once_and_cut_where_the_pictures_are(framelane, loud_clip, tmp_path, container):
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(loud_clip), folder, sound=AAC,
                                  options={"hls_segment_type": container})).wait_ready()
    wait_segments(daemon, folder, 3, WITH_SOUND)
    feed = daemon.feed("cam")
    assert list(feed["outputs"]) == ["web"]
    assert feed["outputs"]["web"]["state"] == "running"
    metrics = daemon.metrics()  # sound of before the first picture waits for it
    assert metrics.sum("framelane_output_packets_dropped_total", output="web") == metrics.sum(
        "framelane_output_packets_dropped_total", output="web", reason="wait_keyframe")
    daemon.stop()
    master = media_playlist.read_master(folder / "master.m3u8")
    assert [v.uri for v in master.variants] == [f"{name}/index.m3u8" for name in SIZES]
    assert master.sound == "audio/index.m3u8"
    for variant in master.variants:
        assert variant.codecs[1:] == ["mp4a.40.2"]
        assert kinds(folder / variant.uri) == ["video"]
    assert kinds(folder / "audio" / "index.m3u8") == ["audio"]
    lists = read(folder, WITH_SOUND)
    pictures, sound = ({s.number: s for s in lists[name].segments} for name in ("p240", "audio"))
    common = sorted(set(pictures) & set(sound))[:3]
    assert len(common) == 3
    for number in common:
        assert sound[number].time == pictures[number].time
        assert sound[number].section == pictures[number].section
        assert abs(sound[number].duration - pictures[number].duration) < 0.002
        if container == "mpegts":  # a packet of sound has 21 ms
            begins = [float(media.probe(folder / name / one.uri)["streams"][0]["start_time"])
                      for name, one in (("p240", pictures[number]), ("audio", sound[number]))]
            assert abs(begins[0] - begins[1]) < 0.06, (number, begins)
    if container == "mpegts":
        close(folder, WITH_SOUND)
        media.ffmpeg("-xerror", "-i", folder / "audio" / "index.m3u8", "-f", "null", "-")


def test_a_source_without_sound_has_renditions_without_it(framelane, camera_clip, tmp_path):
    folder = tmp_path / "web"
    daemon = framelane(renditions(looped(camera_clip), folder, sound=AAC)).wait_ready()
    wait_segments(daemon, folder, 1)
    wait_until((folder / "master.m3u8").is_file, "the master playlist", 10)
    assert daemon.feed("cam")["outputs"]["web"]["state"] == "running"
    daemon.stop()
    assert media_playlist.read_master(folder / "master.m3u8").sound is None
    assert not (folder / "audio" / "index.m3u8").exists()


def test_sound_that_goes_and_comes_is_named_while_it_is_there(framelane, camera, loud_clip, camera_clip,
                                                              tmp_path):
    """The pictures go on. A player would wait for sound that does not come."""
    folder = tmp_path / "web"
    master = folder / "master.m3u8"
    source = camera(loud_clip, audio="aac")
    encodes = {"p240": encode((320, 240)), "p120": encode((160, 120))}
    daemon = framelane(renditions(
        {"url": source.url, "options": {"rtsp_transport": "tcp"}, **IMPATIENT}, folder, encodes,
        sound=AAC)).wait_ready()

    def says(sound):
        return master.is_file() and (media_playlist.read_master(master).sound is not None) == sound

    wait_until(lambda: says(True), "sound in the master playlist", 30)
    for clip, sound in ((camera_clip, ""), (loud_clip, "aac")):
        source.kill()
        source.start(clip, audio=sound)
        wait_until(lambda sound=sound: says(bool(sound)), f"a master playlist, sound: {sound}", 40)
    number = max(one.segments[-1].number for one in read(folder, encodes).values())
    wait_segments(daemon, folder, number + 1, [*encodes, "audio"])
    assert daemon.feed("cam")["outputs"]["web"]["state"] == "running"
    daemon.stop()
    for segment in read(folder, ["audio"])["audio"].segments:
        path = folder / "audio" / segment.uri
        assert path.is_file() != segment.gap
        assert segment.gap or path.stat().st_size > 0


def test_a_player_goes_from_one_rendition_to_another_without_a_jump(framelane, camera, start, made,
                                                                    loud_clip, tmp_path):
    """hls.js in Chromium, while the daemon writes. It counts levels from the lowest bandwidth. It finds its
    place in another level by the segments' dates, which are exact for a source that tells time."""
    long = made("renditions-long.mov", "-stream_loop", "9", "-i", loud_clip, "-c", "copy")
    source = {"url": camera(long, audio="aac").url, "options": {"rtsp_transport": "tcp"}}
    folder = tmp_path / "web"
    daemon = framelane(renditions(source, folder, sound=AAC, options={"hls_list_size": 10})).wait_ready()
    wait_segments(daemon, folder, 5, WITH_SOUND)
    seen = browser.play(start, folder, "master.m3u8", [0, 2, 1], 1, tmp_path / "browser")
    assert seen == {"widths": [160, 320, 240], "jumps": [], "errors": []}


# Chooses the last rendition when the page plays the first one, and tells what the page says.
USE_PAGE = """<script>
const said = [];
setInterval(() => {
  const text = shown.textContent, buttons = [...renditions.children].map(button => button.textContent);
  if (!text.startsWith("now playing") || said.at(-1) === text) return;
  if (said.push(text) === 1) renditions.lastChild.click();
  else fetch("/report", {method: "POST", body: JSON.stringify({said, buttons})});
}, 20);
</script></html>"""


def test_the_player_page_plays_what_its_user_chooses(framelane, start, camera_clip, tmp_path):
    folder = tmp_path / "web"
    encodes = {name: encode(SIZES[name]) for name in ("p240", "p120")}
    daemon = framelane(renditions(looped(camera_clip), folder, encodes,
                                  options={"hls_list_size": 6})).wait_ready()
    wait_segments(daemon, folder, 1, encodes)
    page = (ROOT / "examples" / "player.html").read_text()
    # Begins with the smaller one: the bandwidth that hls.js assumes is too little for the larger one.
    page = page.replace("new Hls()", "new Hls({startLevel: 0, abrEwmaDefaultEstimate: 1000})")
    seen = browser.show(start, folder, page.replace("</html>", USE_PAGE), tmp_path / "browser")
    daemon.stop()
    assert seen["said"] == ["now playing 160x120", "now playing 320x240"]
    assert [text.split(",")[0] for text in seen["buttons"]] == ["automatic", "160x120", "320x240"]
