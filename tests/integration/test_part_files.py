"""Files that could not be completed, and what the next start makes of them."""

import pytest

from harness import media
from harness.configs import COPY, looped, one_feed, x264
from harness.daemon import WITHOUT_PRIVILEGES
from harness.preload import preload
from harness.waiting import wait_until


def test_empty_part_files_are_removed(framelane, clip, tmp_path):
    (tmp_path / "out.mkv.part").write_bytes(b"")
    config = one_feed({"url": str(clip)}, x264(), {"file": {"url": str(tmp_path / "out.mkv")}})
    daemon = framelane(config).wait_ready()
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert [path.name for path in tmp_path.glob("out*")] == ["out.mkv"]
    assert media.frame_count(tmp_path / "out.mkv") == 42


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts"])
def test_a_damaged_part_file_stays_and_the_log_names_it(framelane, camera_clip, tmp_path, suffix):
    """Its first page is zeros, as after a power cut: a tool may still save what follows."""
    part = tmp_path / f"out.{suffix}.part"
    media.ffmpeg("-i", camera_clip, "-t", "2", "-c", "copy", "-f",
                 {"mkv": "matroska", "ts": "mpegts"}.get(suffix, suffix), part)
    data = part.read_bytes()
    if suffix != "ts":  # any other page of a stream can be played
        data = bytes(4096) + data[4096:60_000]
    else:
        data = bytes(60_000)
    part.write_bytes(data)
    config = one_feed(looped(camera_clip), COPY,
                      {"file": {"url": str(tmp_path / f"out.{suffix}")}})
    daemon = framelane(config).wait_ready()
    wait_until(lambda: (tmp_path / f"out.2.{suffix}.part").exists(), "the recording to begin")
    daemon.stop()
    assert part.read_bytes() == data
    assert f"out.{suffix}.part stays as it is: nothing in it can be read" in daemon.log()


@pytest.mark.parametrize("suffix, options", [
    ("mp4", ["-f", "mp4", "-movflags", "frag_keyframe+empty_moov+default_base_moof"]),
    ("mkv", ["-f", "matroska", "-cluster_time_limit", 1000]),
], ids=["mp4", "mkv"])
def test_a_part_file_that_breaks_off_is_cut_back_to_its_last_whole_part(
    framelane, camera_clip, tmp_path, suffix, options
):
    out = tmp_path / f"out.{suffix}"
    whole = media.ffmpeg("-i", camera_clip, "-t", 4, "-c", "copy", *options, "-")
    data = whole[: len(whole) * 6 // 10]
    (tmp_path / f"out.{suffix}.part").write_bytes(data)
    config = one_feed({"url": str(tmp_path / "later.mp4")}, COPY, {"file": {"url": str(out)}})
    framelane(config).wait_ready()
    wait_until(out.exists, "the file to get its name")
    assert media.decodes_cleanly(out)
    assert data.startswith(out.read_bytes())
    assert media.frame_count(out) >= 50


def test_a_part_file_that_cannot_be_read_for_now_is_looked_at_again(framelane, camera_clip, tmp_path):
    environment, file = preload(tmp_path, "shortage")
    file.write_text("disk")
    folder = tmp_path / "rec"
    folder.mkdir()
    part = folder / "20010101-000000.mkv.part"
    media.ffmpeg("-i", camera_clip, "-t", 2, "-c", "copy", "-f", "matroska", part)
    config = one_feed(looped(camera_clip), COPY,
                      {"rec": {"url": f"{folder}/%Y%m%d-%H%M%S.mkv", "segment": "1s"}})
    daemon = framelane(config, env=environment).wait_ready()
    daemon.wait_log("20010101-000000.mkv.part keeps this name for now: cannot read")
    assert part.exists()
    file.unlink()
    wait_until(lambda: part.with_suffix("").exists(), "the file to get its name")
    assert media.decodes_cleanly(part.with_suffix(""))


def recording_into_a_locked_folder(framelane, camera_clip, folder, retry):
    """A daemon whose output is down, since its folder has become read-only in the middle of a file;
    and that file."""
    daemon = framelane(
        one_feed(looped(camera_clip), COPY,
                 {"rec": {"url": f"{folder}/%s.mp4", "segment": "1s",
                          "reconnect": {"first": retry, "max": retry}}}),
        wrapper=WITHOUT_PRIVILEGES).wait_ready()
    wait_until(lambda: list(folder.glob("*.part")), "the first file")
    folder.chmod(0o555)
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_output_reconnects_total", output="rec") > 0
        and m.one("framelane_output_up", feed="cam", output="rec") == 0, "the output to be down")
    assert metrics.sum("framelane_output_reconnects_total", output="rec", reason="auth") == 0
    part, = folder.glob("*.part")
    return daemon, part


def test_a_file_that_could_not_be_renamed_gets_its_name_with_the_next_file(
    framelane, camera_clip, tmp_path
):
    folder = tmp_path / "rec"
    daemon, part = recording_into_a_locked_folder(framelane, camera_clip, folder, "100ms")
    folder.chmod(0o755)
    wait_until(lambda: part.with_suffix("").exists(), "the file to get its name")
    assert not part.exists()
    daemon.stop()
    assert media.decodes_cleanly(part.with_suffix(""))
    assert daemon.log().count("keeps this name for now") == 1, daemon.log()


def test_a_file_that_could_not_be_renamed_gets_its_name_at_the_stop(
    framelane, camera_clip, tmp_path
):
    folder = tmp_path / "rec"
    daemon, part = recording_into_a_locked_folder(framelane, camera_clip, folder, "1h")
    folder.chmod(0o755)
    daemon.stop()
    assert not part.exists()
    assert media.decodes_cleanly(part.with_suffix(""))


def test_a_file_that_could_not_be_renamed_gets_its_name_after_a_restart_of_its_feed(
    framelane, camera_clip, tmp_path
):
    folder = tmp_path / "rec"
    daemon, part = recording_into_a_locked_folder(framelane, camera_clip, folder, "100ms")
    daemon.restart_feed("cam")
    wait_until(lambda: daemon.log().count("feed cam: running (") == 2, "the feed's next run")
    before = daemon.metrics().sum("framelane_output_reconnects_total", output="rec")
    daemon.wait_metrics(
        lambda m: m.sum("framelane_output_reconnects_total", output="rec") > before,
        "the next run to find the folder locked")
    folder.chmod(0o755)
    wait_until(lambda: part.with_suffix("").exists(), "the file to get its name")
    assert not part.exists()
    daemon.stop()
    assert media.decodes_cleanly(part.with_suffix(""))


def test_files_in_a_folder_that_could_not_be_read_get_their_names_when_it_can_be(
    framelane, camera_clip, tmp_path
):
    folder = tmp_path / "rec" / "2020"
    folder.mkdir(parents=True)
    media.ffmpeg("-i", camera_clip, "-t", 2, "-c", "copy", "-f", "mpegts", folder / "1.ts.part")
    folder.chmod(0)
    daemon = framelane(
        one_feed(looped(camera_clip), COPY,
                 {"rec": {"url": f"{tmp_path}/rec/%Y/%s.ts", "segment": "1s"}}),
        wrapper=WITHOUT_PRIVILEGES).wait_ready()
    daemon.wait_log(f"cannot look for files that an earlier run left unfinished in {folder}/")
    folder.chmod(0o755)
    wait_until((folder / "1.ts").exists, "the file to get its name")
    daemon.stop()
    assert [path.name for path in folder.iterdir()] == ["1.ts"]
    assert media.decodes_cleanly(folder / "1.ts")
