"""Old recordings are deleted as `keep` says, and the log says so where they cannot be."""

import os

import pytest

from harness.configs import COPY, looped
from harness.daemon import WITHOUT_PRIVILEGES
from harness.small_disk import file_system
from harness.waiting import wait_until


def recording(clip, url, keep):
    """A feed that records segments and deletes them as `keep` says."""
    return {"input": looped(clip), "encodes": {"main": COPY},
            "outputs": {"rec": {"url": url, "segment": "1s", "keep": keep}}}


def old_file(path, age, size=1):
    """A recording of an earlier run, of this age in seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    now = path.stat().st_mtime
    os.utime(path, (now - age, now - age))


@pytest.mark.sanitizers
def test_a_folder_that_cannot_be_read_is_logged_counted_and_shown(framelane, camera_clip, tmp_path):
    old = tmp_path / "rec" / "2001" / "1000000000.ts"
    old_file(old, 86_400)
    old_file(tmp_path / "rec" / "2002" / "1000000000.ts", 86_400)
    old.parent.chmod(0o300)
    daemon = framelane(
        {"feeds": {"cam": recording(camera_clip, f"{tmp_path}/rec/%Y/%s.ts", {"age": "1s"})}},
        wrapper=WITHOUT_PRIVILEGES).wait_ready()
    daemon.wait_log(f"cannot read {tmp_path}/rec/2001/: Permission denied")
    daemon.wait_metrics(
        lambda m: m.one("framelane_output_retention_errors_total", feed="cam", output="rec",
                        reason="list") >= 2, "the folder to be counted by two passes")
    assert daemon.log().count("looking for old files: cannot read") == 1
    # At the start it hides unfinished recordings, too.
    assert "cannot look for files that an earlier run left unfinished" in daemon.log()
    output = daemon.feed("cam")["outputs"]["rec"]
    assert output["state"] == "running"
    assert f"cannot read {tmp_path}/rec/2001/" in output["retention_reason"]
    wait_until(lambda: not (tmp_path / "rec" / "2002").exists(), "what can be deleted to be so")
    assert old.exists()
    old.parent.chmod(0o755)
    wait_until(lambda: not old.parent.exists(), "the old file and its folder to be deleted")
    daemon.wait_log("looking for old files: running again")
    assert daemon.feed("cam")["outputs"]["rec"]["retention_reason"] is None


@pytest.fixture
def disk(tmp_path):
    """A file system of 8 MB, of which 25 % are 2 MB to the page."""
    with file_system(tmp_path / "disk", 8_000_000) as folder:
        yield folder


def test_min_free_deletes_the_oldest_recordings_of_all_feeds_of_a_disk(framelane, camera_clip, disk,
                                                                       tmp_path):
    """It takes 7 s: space is first measured after 5, when all feeds have said what they have."""
    # a and b took turns. What other has is older, and is not for others to delete.
    ages = {disk / feed / f"{1_000_000_000 + i}.ts": 10_000 - 100 * i
            for i, feed in enumerate("ababab")}
    for path, age in ages.items():
        old_file(path, age, 1_000_000)
    others = disk / "other" / "1000000000.ts"
    old_file(others, 20_000, 1_000_000)
    elsewhere = tmp_path / "elsewhere" / "1000000000.ts"
    old_file(elsewhere, 20_000, 1_000_000)
    daemon = framelane({"feeds": {
        "a": recording(camera_clip, f"{disk}/a/%s.ts", {"min_free": "2M"}),
        "b": recording(camera_clip, f"{disk}/b/%s.ts", {"min_free": "25%"}),
        "other": recording(camera_clip, f"{disk}/other/%s.ts", {"age": "7d"}),
        "elsewhere": recording(camera_clip, f"{tmp_path}/elsewhere/%s.ts", {"min_free": "1k"}),
    }}).wait_ready()

    def free():
        state = os.statvfs(disk)
        return state.f_bavail * state.f_frsize

    wait_until(lambda: free() > 1_900_000, "room to be made")
    wait_until(lambda: len(list(disk.glob("?/*.ts"))) >= 6, "recordings to be completed")
    (disk / "filler").write_bytes(bytes(1_200_000))
    wait_until(lambda: free() > 1_900_000, "room to be made again")
    kept = [path.exists() for path in ages]
    assert kept == sorted(kept), f"not the oldest were deleted: {kept}"
    assert 1 <= kept.count(True) <= 4
    assert others.exists() and elsewhere.exists()
    assert daemon.metrics().sum("framelane_output_retention_errors_total") == 0
    daemon.stop()


def test_an_output_that_replaces_one_keeps_what_that_would_delete(framelane, camera_clip, tmp_path):
    """It takes 8 s."""
    config = {"feeds": {"cam": recording(camera_clip, f"{tmp_path}/rec/%s.ts", {"age": "5s"})}}
    daemon = framelane(config).wait_ready()
    recordings = lambda: sorted((tmp_path / "rec").glob("*.ts"))  # noqa: E731
    wait_until(recordings, "a recording")
    first = recordings()[0]
    output = config["feeds"]["cam"]["outputs"]["rec"]
    del output["keep"]
    output["timeout"] = "9s"  # so that another output takes its place
    daemon.reload(config)
    wait_until(lambda: not first.exists() or recordings()[-1].stat().st_mtime > first.stat().st_mtime + 7,
               "recordings of 7 s more")
    assert first.exists()
