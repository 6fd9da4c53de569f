"""The configuration is read again while the daemon runs."""

import copy
import os
import signal
import socket
import threading

from harness import media
from harness.configs import COPY, encoder, looped, x264
from harness.reloading import descriptors, feed, rated, require_consecutive
from harness.waiting import wait_until


def resident(daemon):
    with open(f"/proc/{daemon.process.pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_only_what_differs_begins_anew(framelane, camera_clip, tmp_path):
    for name in ("kept", "changed", "gone", "new"):
        (tmp_path / name).mkdir()
    config = {"feeds": {name: feed(camera_clip, tmp_path / name)
                        for name in ("kept", "changed", "gone")}}
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    daemon.wait_more_frames("kept", 10)
    daemon.wait_more_frames("changed", 10)
    before = daemon.metrics()
    config["feeds"]["new"] = feed(camera_clip, tmp_path / "new")
    config["feeds"]["changed"]["ring"] = 5
    del config["feeds"]["gone"]
    assert daemon.reload(config) == {"added": ["new"], "changed": ["changed"], "removed": ["gone"],
                                     "unchanged": ["kept"], "next_start": []}
    after = daemon.wait_more_frames("new", 10)
    daemon.wait_log("feed gone: ended")
    assert not after.series("framelane_feed_up", feed="gone")
    assert daemon.request("GET", "/api/v1/feeds/gone")[0] == 404
    # Counters belong to the name, and none was lost.
    for name in ("kept", "changed"):
        assert (after.sum("framelane_frames_in_total", feed=name)
                >= before.sum("framelane_frames_in_total", feed=name))
        assert after.sum("framelane_frames_dropped_total", feed=name) == 0
    assert after.one("framelane_config_last_reload_successful") == 1
    assert (after.one("framelane_config_last_reload_success_timestamp_seconds")
            > before.one("framelane_config_last_reload_success_timestamp_seconds"))
    daemon.stop()
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert len(list((tmp_path / "changed").iterdir())) == 2
    require_consecutive(next((tmp_path / "kept").iterdir()), 0.04)
    for path in tmp_path.glob("*/*.ts"):
        assert media.decodes_cleanly(path)


def test_outputs_change_while_their_feed_goes_on(framelane, camera_clip, tmp_path):
    """Added, changed and removed ones; the others lose nothing, and the source is not opened again."""
    def output(name, suffix="ts"):
        return {"from": "main", "url": str(tmp_path / f"{name}.{suffix}")}
    config = {"feeds": {"cam": feed(camera_clip, encode=x264("400ms"))}}
    outputs = config["feeds"]["cam"]["outputs"]
    outputs.clear()
    outputs.update(kept=output("kept"), changed=output("old"), gone=output("gone"))
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    daemon.wait_more_frames("cam", 15)
    del outputs["gone"]
    outputs.update(changed=output("new", "mp4"), added=output("added", "mkv"))
    assert daemon.reload(config)["changed"] == ["cam"]
    metrics = daemon.wait_more_frames("cam", 40)
    names = {have["output"] for have, _ in metrics.series("framelane_output_bytes_total", feed="cam")}
    assert names == {"kept", "changed", "added"}
    # What cannot be written is tried again by a reload.
    outputs["added"]["url"] = "/proc/nowhere/added.mkv"
    daemon.reload(config)
    wait_until(lambda: daemon.feed("cam")["outputs"]["added"]["state"] in ("backoff", "failed"),
               "the output to fail", 20)
    outputs["added"] = output("added2", "mkv")
    daemon.reload(config)
    wait_until(lambda: daemon.feed("cam")["outputs"]["added"]["state"] == "running",
               "the output to run", 20)
    daemon.wait_more_frames("cam", 20)
    assert daemon.log().count("feed cam: running") == 1
    daemon.stop()
    frames = {path.stem: media.frame_count(path) for path in tmp_path.glob("*.*")
              if path.suffix in (".ts", ".mp4", ".mkv")}
    require_consecutive(tmp_path / "kept.ts", 0.04)
    assert frames["old"] + frames["new"] == frames["kept"]
    assert frames["gone"] >= 15 and frames["added"] >= 20 and frames["added2"] >= 20
    for path in tmp_path.glob("*.m*"):
        assert path.suffix not in (".mp4", ".mkv") or media.decodes_cleanly(path)


def test_what_needs_no_new_file_begins_none(framelane, camera_clip, tmp_path):
    config = {"feeds": {"cam": {**feed(camera_clip, encode=x264("400ms")),
                                "outputs": {"file": {"url": str(tmp_path / "%s.ts"), "queue": 5,
                                                     "segment": "1h"}}}}}
    cam = config["feeds"]["cam"]
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    daemon.wait_more_frames("cam", 10)
    old, newer = tmp_path / "1600000000.ts", tmp_path / "1600000001.ts"
    for path in (old, newer):
        path.write_bytes(b"old")
        os.utime(path, (int(path.stem), int(path.stem)))
    cam["on_full"] = "drop"
    cam["input"]["reconnect"] = {"first": "1s", "max": "2s"}
    cam["outputs"]["file"].update(queue=100, reconnect={"first": "2s"}, keep={"age": "1d"})
    assert daemon.reload(config)["changed"] == ["cam"]
    wait_until(lambda: not old.exists(), "the old file to be deleted", 20)
    cam["outputs"]["file"]["keep"] = {"age": "2d"}
    daemon.reload(config)
    daemon.wait_more_frames("cam", 20)
    assert daemon.log().count("feed cam: running") == 1
    daemon.stop()
    newer.unlink(missing_ok=True)  # the newest complete file is never deleted
    recording, = tmp_path.glob("*.ts")
    require_consecutive(recording, 0.04)


def test_a_lost_source_is_tried_at_once_with_another_reconnect(framelane, tmp_path):
    missing = tmp_path / "missing.ts"
    cam = {"input": {"url": str(missing), "format": "mpegts", "pace": "realtime",
                     "reconnect": {"first": "1h", "max": "1h"}},
           "encodes": {"main": x264()}, "outputs": {"out": {"url": "null:"}}}
    daemon = framelane({"feeds": {"cam": cam}}).wait_ready()
    daemon.wait_state("cam", "backoff")
    before = daemon.metrics().sum("framelane_source_reconnects_total")
    cam["input"]["reconnect"] = {"first": "100ms", "max": "100ms"}
    daemon.reload({"feeds": {"cam": cam}})
    daemon.wait_metrics(lambda m: m.sum("framelane_source_reconnects_total") > before + 2,
                        "the source to be tried again")
    daemon.stop()


def test_a_file_that_has_ended_is_not_read_again(framelane, clip, tmp_path):
    """Unless it is another one."""
    cam = {"input": {"url": str(clip)}, "encodes": {"main": x264()},
           "outputs": {"a": {"from": "main", "url": str(tmp_path / "a.mkv")}}}
    daemon = framelane({"feeds": {"cam": cam}}).wait_ready()
    daemon.wait_state("cam", "ended")
    frames = daemon.metrics().sum("framelane_frames_in_total")
    cam["outputs"]["b"] = {"from": "main", "url": str(tmp_path / "b.mkv")}
    cam["encodes"]["main"] = rated("300k")
    assert daemon.reload({"feeds": {"cam": cam}})["changed"] == ["cam"]
    state = daemon.feed("cam")
    assert state["state"] == "ended" and state["outputs"]["b"]["state"] == "ended"
    assert daemon.metrics().sum("framelane_frames_in_total") == frames
    cam["input"]["url"] = f"file:{clip}"
    daemon.reload({"feeds": {"cam": cam}})
    daemon.wait_metrics(lambda m: m.sum("framelane_frames_in_total") == 2 * frames, "another input")
    daemon.wait_state("cam", "ended")
    daemon.stop()
    assert media.frame_count(tmp_path / "b.mkv") == frames


def test_an_output_that_is_stuck_is_left_in_time(framelane, camera_clip, tmp_path):
    """Its peer reads nothing, and its own timeout is an hour. Producers wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as peer:
        url = f"tcp://127.0.0.1:{peer.getsockname()[1]}"
        cam = {"input": looped(camera_clip), "encodes": {"main": encoder("rawvideo")}, "on_full": "block",
               "outputs": {"kept": {"url": "null:"},
                           "stuck": {"url": url, "format": "nut", "timeout": "1h", "queue": 5}}}
        daemon = framelane({"feeds": {"cam": cam}}).wait_ready()
        wait_until(lambda: daemon.feed("cam")["outputs"]["stuck"]["queue"] >= 4, "the peer to be full", 20)
        cam["outputs"]["stuck"] = {"url": str(tmp_path / "file.nut")}
        daemon.reload({"feeds": {"cam": cam}})
        wait_until((tmp_path / "file.nut.part").exists, "the file to be written", 20)
        daemon.wait_log("not written before it left; see whether its peer or disk is slow")
        daemon.wait_more_frames("cam", 10)
        daemon.stop()


def test_a_wrong_file_changes_nothing(framelane, camera_clip):
    config = {"feeds": {"cam": feed(camera_clip)}}
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    daemon.wait_more_frames("cam", 5)
    wrong = copy.deepcopy(config)
    wrong["feeds"]["cam"]["rings"] = 3
    wrong["feeds"]["other"] = {"input": {"url": "rtsp://127.0.0.1:1/x"}, "encodes": {"main": x264("0s")}}
    error = daemon.reload(wrong, expected=422)["error"]
    assert error["code"] == "wrong_configuration"
    keys = [problem["key"] for problem in error["problems"]]
    assert "feeds.cam.rings" in keys and any(key.startswith("feeds.other") for key in keys)
    lines = daemon.config_path.read_text().splitlines()
    for problem in error["problems"]:
        assert problem["key"].rsplit(".", 1)[1] in lines[problem["line"] - 1]
        assert problem["message"] in daemon.log()
    metrics = daemon.metrics()
    assert metrics.one("framelane_config_last_reload_successful") == 0
    assert len(metrics.series("framelane_feed_up")) == 1
    daemon.wait_more_frames("cam", 5)
    assert daemon.reload(config)["unchanged"] == ["cam"]
    assert daemon.metrics().one("framelane_config_last_reload_successful") == 1
    daemon.stop()


def test_a_hangup_reads_the_configuration_again(framelane, camera_clip):
    config = {"feeds": {"cam": feed(camera_clip)}}
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    config["feeds"]["other"] = feed(camera_clip)
    daemon.write_config(config)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_more_frames("other", 5)
    daemon.write_config("feeds: {")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_metrics(lambda m: m.one("framelane_config_last_reload_successful") == 0,
                        "the reload to be refused")
    daemon.wait_more_frames("other", 5)
    daemon.stop()


def test_a_camera_that_left_is_free_for_another_feed(framelane, camera_clip, tmp_path):
    """The feed has another name now, and writes the same playlist."""
    playlist = tmp_path / "live" / "index.m3u8"
    one = {"input": looped(camera_clip), "encodes": {"main": x264()},
           "outputs": {"web": {"from": "main", "url": str(playlist),
                               "options": {"hls_time": 1, "hls_list_size": 0}}}}
    daemon = framelane({"feeds": {"old": one}}).wait_ready()
    wait_until(playlist.is_file, "a playlist", 20)
    daemon.reload({"feeds": {"new": one}})
    daemon.wait_more_frames("new", 30)
    metrics = daemon.metrics()
    assert metrics.sum("framelane_output_reconnects_total", feed="new") == 0
    assert metrics.sum("framelane_feed_restarts_total") == 0
    daemon.stop()
    media.close_playlist(playlist)
    assert media.decodes_cleanly(playlist)


def test_one_reload_at_a_time(framelane, camera_clip):
    daemon = framelane({"feeds": {"cam": feed(camera_clip)}}).wait_ready()
    answers = []

    def ask():
        answers.append(daemon.request("POST", "/api/v1/reload",
                                      headers={"X-Framelane-Request": "1"})[0])
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {200, 409} and 200 in answers
    daemon.stop()


def test_two_hundred_reloads_leave_nothing_behind(framelane, camera_clip, tmp_path):
    """Valid and invalid ones, with eight feeds, of which one never changes."""
    (tmp_path / "kept").mkdir()
    base = {"kept": feed(camera_clip, tmp_path / "kept"),
            **{f"cam{i}": feed(camera_clip, encode=dict(COPY) if i % 2 else None)
               for i in range(1, 8)}}
    # With malloc's arenas of each thread, memory depends on which thread took which.
    daemon = framelane({"feeds": base}, env={"MALLOC_ARENA_MAX": "1"}).wait_ready()
    daemon.wait_more_frames("cam2", 5)

    def reload(number):
        feeds = copy.deepcopy(base)
        if number % 5 == 4:
            feeds["cam1"]["encodes"]["main"]["video"] = "mp3"
            daemon.reload({"feeds": feeds}, expected=422)
            return
        feeds[f"cam{1 + number % 7}"]["ring"] = 4 + number % 4
        if number % 3 == 0:
            del feeds[f"cam{1 + (number + 3) % 7}"]
        if number % 4 == 0:
            feeds[f"more{number % 2}"] = feed(camera_clip)
        answer = daemon.reload({"feeds": feeds})
        assert "kept" in answer["unchanged"]

    def settle():
        daemon.reload({"feeds": base})
        daemon.wait_metrics(lambda m: m.sum("framelane_feed_up") == 8 and m.sum("framelane_output_up") == 8,
                            "all feeds to be up", 30)
        return descriptors(daemon), daemon.threads()

    for number in range(20):
        reload(number)
    open_files, threads = settle()
    memory = resident(daemon)
    for number in range(20, 200):
        reload(number)
        if number % 20 == 0:
            daemon.metrics()  # checks the ledgers

    def as_before():
        files, running = settle()
        return files <= open_files and running <= threads
    wait_until(as_before, f"{open_files} files and {threads} threads, as before", 60)
    assert resident(daemon) < memory + (20 << 20)  # it varies by some 10 MiB, and does not grow with more reloads
    daemon.wait_log("feed kept: running")
    assert daemon.log().count("feed kept: running") == 1
    daemon.stop()
    require_consecutive(next((tmp_path / "kept").iterdir()), 0.04)
