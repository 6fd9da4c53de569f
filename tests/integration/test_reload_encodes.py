"""A feed's encodes, and what is drawn on them, change while the daemon runs."""

import copy

from harness import media
from harness.configs import ALL_WHITE, COPY, encoder, looped, x264
from harness.reloading import descriptors, rated, require_consecutive
from harness.waiting import wait_until


def test_masks_and_texts_change_while_their_feed_goes_on(framelane, camera_clip, tmp_path):
    """The encoder stays open, and its file goes on: each frame is masked and drawn on as it was to be then."""
    config = {"feeds": {"cam": {"input": looped(camera_clip), "encodes": {"main": encoder("rawvideo")},
                                "outputs": {"out": {"url": str(tmp_path / "out.nut")}}}}}
    cam = config["feeds"]["cam"]
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    daemon.wait_more_frames("cam", 10)
    cam["mask"] = ALL_WHITE
    assert daemon.reload(config)["changed"] == ["cam"]
    daemon.wait_more_frames("cam", 25)
    cam["encodes"]["main"]["overlay"] = {"text": "gate", "color": "#000000", "box": "none"}
    daemon.reload(config)
    daemon.wait_more_frames("cam", 25)
    cam["encodes"]["main"]["overlay"] = {"image": str(tmp_path / "missing.png")}
    daemon.reload(config, expected=422)
    del cam["encodes"]["main"]["overlay"]
    del cam["mask"]
    daemon.reload(config)
    metrics = daemon.wait_more_frames("cam", 25)
    assert metrics.sum("framelane_frames_dropped_total") == 0
    assert daemon.log().count("feed cam: running") == 1
    daemon.stop()
    stream = media.video(tmp_path / "out.nut")
    pixels, size = media.decoded(tmp_path / "out.nut", "gray"), stream["width"] * stream["height"]
    frames = [pixels[i:i + size] for i in range(0, len(pixels), size)]
    kinds = []
    for frame in frames:
        kind = ("white" if min(frame) > 230 else
                "drawn" if sorted(frame)[size // 2] > 230 else "plain")
        if kinds[-1:] != [kind]:
            kinds.append(kind)
    assert kinds == ["plain", "white", "drawn", "plain"]
    require_consecutive(tmp_path / "out.nut", 0.04)


def test_encodes_come_go_and_change_while_the_others_go_on(framelane, camera_clip, tmp_path):
    """The source is not opened again, and what stays loses nothing."""
    def output(encode, name=None):
        return {"from": encode, "url": str(tmp_path / f"{name or encode}.mkv")}
    config = {"feeds": {"cam": {"input": looped(camera_clip),
                                "encodes": {"kept": x264("400ms"), "gone": x264("400ms"),
                                            "changed": rated("300k")},
                                "outputs": {name: output(name) for name in ("kept", "gone", "changed")}}}}
    encodes, outputs = config["feeds"]["cam"]["encodes"], config["feeds"]["cam"]["outputs"]
    daemon = framelane(copy.deepcopy(config)).wait_ready()
    daemon.wait_more_frames("cam", 15)
    del encodes["gone"], outputs["gone"]
    encodes["changed"] = rated("2M")
    encodes["added"], encodes["copy"] = encoder("mjpeg"), dict(COPY)
    outputs["added"], outputs["copy"] = output("added"), output("copy")
    assert daemon.reload(config)["changed"] == ["cam"]
    daemon.wait_metrics(lambda m: m.sum("framelane_frames_out_total", encode="added") > 20,
                        "the new encode to encode", 20)
    metrics = daemon.wait_more_frames("cam", 20)
    assert {have["encode"] for have, _ in metrics.series("framelane_frames_in_flight")} == {
        "kept", "changed", "added"}
    for encode in ("kept", "changed"):
        assert metrics.sum("framelane_frames_dropped_total", encode=encode) == 0
    assert metrics.sum("framelane_output_packets_dropped_total", output="kept") == 0
    assert daemon.log().count("feed cam: running") == 1
    daemon.stop()
    require_consecutive(tmp_path / "kept.mkv", 0.04)
    frames = {path.name: media.frame_count(path) for path in tmp_path.glob("*.mkv")}
    assert frames["gone.mkv"] > 0 and frames["added.mkv"] >= 20 and frames["copy.mkv"] > 0
    changed = [count for name, count in frames.items() if name.startswith("changed")]
    assert sum(changed) == frames["kept.mkv"] and len(changed) <= 2
    for path in tmp_path.glob("*.mkv"):
        assert media.decodes_cleanly(path)


def test_encodes_that_come_and_go_leave_nothing_behind(framelane, camera_clip, tmp_path):
    """One encode of the feed stays, and its file has every picture."""
    cam = {"input": looped(camera_clip), "encodes": {"kept": x264("400ms")}, "on_full": "block",
           "outputs": {"kept": {"from": "kept", "url": str(tmp_path / "%s.mkv")}}}
    daemon = framelane({"feeds": {"cam": cam}}).wait_ready()
    daemon.wait_more_frames("cam", 5)

    def reload(number):
        one = copy.deepcopy(cam)
        for other in range(1 + number % 2):
            name = f"other{(number + other) % 5}"
            one["encodes"][name] = dict(COPY) if other % 2 else encoder("mjpeg")
            one["outputs"][name] = {"from": name, "url": "null:"}
        if number % 4 == 1:
            one["encodes"]["kept"]["overlay"] = {"text": f"number {number}"}
        assert daemon.reload({"feeds": {"cam": one}})["changed"] == ["cam"]

    def settle():
        daemon.reload({"feeds": {"cam": cam}})
        daemon.wait_more_frames("cam", 5)
        return descriptors(daemon), daemon.threads()

    for number in range(12):
        reload(number)
    wait_until(lambda: settle() == settle(), "the first encodes to be gone", 30)
    open_files, threads = settle()
    for number in range(60):
        reload(number)
        if number % 10 == 0:
            daemon.wait_more_frames("cam", 3)  # checks the ledger

    def as_before():
        files, running = settle()
        return files <= open_files and running <= threads
    wait_until(as_before, f"{open_files} files and {threads} threads, as before", 30)
    dropped = daemon.metrics().series("framelane_frames_dropped_total", encode="kept")
    assert all(count == 0 for _, count in dropped), dropped
    assert daemon.log().count("feed cam: running") == 1
    daemon.stop()
    recording, = tmp_path.glob("*.mkv")
    require_consecutive(recording, 0.04)
