"""Sound that is transcoded, measured against the picture: a clip that flashes and beeps at once."""

import array
import json
import signal
import time

import pytest

from harness import media, media_playlist
from harness.configs import COPY, IMPATIENT, one_feed, x264
from harness.waiting import wait_until

AAC = {"codec": "aac", "bitrate": "64k"}
TCP = {"options": {"rtsp_transport": "tcp"}, **IMPATIENT}
SIZE = 64 * 48
PER_SECOND = {"alaw": 25, "stereo": 43}  # packets, as the camera sends them


@pytest.fixture(scope="session")
def beeping(made):
    """beeping("alaw" | "aac" | "stereo"): 40 s that flash and beep for 80 ms every 0.6 s."""
    codecs = {"alaw": ["pcm_alaw", "-ar", "8000", "-ac", "1"],
              "aac": ["aac", "-ar", "16000", "-ac", "1"],
              "stereo": ["aac", "-ar", "44100", "-ac", "2"]}

    def make(sound, suffix="mov", seconds=40):
        return made(
            f"beeping-{sound}-{seconds}.{suffix}",
            "-f", "lavfi", "-i", f"nullsrc=size=64x48:rate=25:duration={seconds},"
            "geq=lum='if(lt(mod(T,0.6),0.08),235,16)':cb=128:cr=128",
            "-f", "lavfi", "-i", "aevalsrc='if(lt(mod(t,0.6),0.08),0.8*sin(2*PI*880*t),0)'"
            f":sample_rate=48000:duration={seconds}",
            "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-bf", "0",
            "-c:a", *codecs[sound])

    return make


def flashes(path):
    """When the picture turns white."""
    pixels = media.decoded(path, "gray")
    white = [pixels[at + SIZE // 2] > 128 for at in range(0, len(pixels), SIZE)]
    times = sorted(media.timestamps(path))
    assert len(times) == len(white)
    return [time for time, now, before in zip(times[1:], white[1:], white) if now and not before]


def beeps(path):
    """When the sound begins after a silence, in the time of its own timestamps."""
    frames = media.probe(path, "-select_streams", "a:0", "-show_frames", "-show_entries",
                         "frame=pts_time,nb_samples")["frames"]
    rate = int(next(s for s in media.probe(path)["streams"] if s["codec_type"] == "audio")
               ["sample_rate"])
    samples = array.array("h", media.ffmpeg("-i", path, "-map", "0:a:0", "-f", "s16le", "-"))
    found, at, loud = [], 0, None
    for frame in frames:
        start, count = float(frame["pts_time"]), int(frame["nb_samples"])
        for i, sample in enumerate(samples[at:at + count]):
            if abs(sample) > 6000:
                time = start + i / rate
                if loud is not None and time > loud + 0.035:
                    found.append(time)
                loud = time
            elif loud is None:
                loud = start - 1
        at += count
    return found


def assert_in_step(path, least):
    """Each flash has its beep, within 20 ms."""
    seen, heard = flashes(path), beeps(path)
    # At its ends a file may have one without the other, and so may the place where a camera went.
    seen = [flash for before, flash in zip([-1, *seen], seen) if flash > before + 0.5]
    pairs = [(flash, min(heard, key=lambda beep, flash=flash: abs(beep - flash))) for flash in seen
             if heard and heard[0] - 0.5 < flash < heard[-1] + 0.5]
    assert len(pairs) >= least, (seen, heard)
    assert all(abs(beep - flash) < 0.020 for flash, beep in pairs), pairs


@pytest.mark.sanitizers
@pytest.mark.parametrize("video", [COPY, x264()], ids=["copied", "encoded"])
def test_a_camera_with_g711_can_be_heard_everywhere(framelane, camera, beeping, tmp_path, video):
    record, stream = tmp_path / "record.mp4", tmp_path / "stream.ts"
    playlist = tmp_path / "hls" / "index.m3u8"
    daemon = framelane(one_feed(
        {"url": camera(beeping("alaw"), audio="alaw").url, **TCP}, {**video, "audio": AAC},
        {"file": {"url": str(record)}, "stream": {"url": str(stream)},
         "hls": {"url": str(playlist), "options": {"hls_time": 1, "hls_list_size": 0}}},
    )).wait_ready()
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_input_bytes_total", feed="cam") > 20_000, "2 s of sound")
    assert metrics.one("framelane_audio_info", feed="cam", encode="main", codec="aac") == 1
    assert daemon.feed("cam")["encodes"]["main"]["audio"]["codec"] == "aac"
    daemon.stop()
    assert "goes without audio" not in daemon.log()
    media.close_playlist(playlist)
    for path in (record, stream, playlist):
        kinds = {s["codec_type"]: s["codec_name"] for s in media.probe(path)["streams"]}
        assert kinds == {"video": "h264", "audio": "aac"}
        assert_in_step(path, 2)


@pytest.mark.parametrize("sound, codec", [("alaw", "alaw"), ("stereo", "aac")])
def test_the_sound_keeps_step_when_the_camera_comes_back(
    framelane, camera, beeping, tmp_path, sound, codec
):
    """With the same sound, or with another codec, rate and number of channels."""
    source = camera(beeping("alaw"), audio="alaw")
    record = tmp_path / "record.mkv"
    daemon = framelane(one_feed({"url": source.url, **TCP}, {**COPY, "audio": AAC},
                                {"file": {"url": str(record)}},
                                # On a busy machine the camera needs seconds to come back.
                                on_gap={"split_after": "never"})).wait_ready()

    def packets():
        return daemon.metrics().sum("framelane_audio_packets_in_total", feed="cam")

    wait_until(lambda: packets() > 1.5 * PER_SECOND["alaw"], "sound")
    source.kill()
    daemon.wait_metrics(lambda m: m.sum("framelane_source_reconnects_total", feed="cam") > 0, "loss")
    # Nothing stays in the encoder while there is no camera.
    wait_until(lambda: daemon.metrics().one("framelane_audio_packets_in_flight", feed="cam",
                                            encode="main") == 0, "the rest of the sound")
    before = packets()
    source.start(beeping(sound), audio=codec)
    wait_until(lambda: packets() > before + 1.5 * PER_SECOND[sound], "more of it")
    metrics = daemon.metrics()
    daemon.stop()
    assert_in_step(record, 3)
    assert metrics.sum("framelane_audio_packets_dropped_total", feed="cam") == 0


def stretches(playlist, folder):
    """What lies between two discontinuities, as one file each."""
    parts = {}
    for segment in media_playlist.read(playlist).segments:
        parts.setdefault(segment.section, []).append((playlist.parent / segment.uri).read_bytes())
    for section, segments in parts.items():
        path = folder / f"stretch-{section}.ts"
        path.write_bytes(b"".join(segments))
        yield path


@pytest.mark.parametrize("video", [COPY, x264()], ids=["copied", "encoded"])
def test_the_sound_keeps_step_in_the_next_recording_and_behind_a_discontinuity(
    framelane, camera, beeping, tmp_path, video
):
    source = camera(beeping("alaw"), audio="alaw")
    playlist = tmp_path / "hls" / "index.m3u8"
    config = one_feed({"url": source.url, **TCP}, {**video, "audio": AAC}, {
        **{kind: {"url": f"{tmp_path}/{kind}/%Y%m%d-%H%M%S.{kind}"} for kind in ("mkv", "mp4")},
        "hls": {"url": str(playlist), "options": {"hls_time": 1, "hls_list_size": 0}}},
        on_gap={"split_after": "500ms"})
    daemon = framelane(config).wait_ready()

    def files(kind):
        return sorted((tmp_path / kind).glob("*"))

    def wait_for_sound(least):
        wait_until(lambda: daemon.metrics().sum("framelane_audio_packets_in_total", feed="cam")
                   > least + 2 * PER_SECOND["alaw"], "2 s of sound")

    wait_for_sound(0)
    source.kill()
    for kind in ("mkv", "mp4"):
        wait_until(lambda kind=kind: [path.suffix for path in files(kind)] == [f".{kind}"],
                   "the recording to be complete while the camera is gone")
    before = daemon.metrics().sum("framelane_audio_packets_in_total", feed="cam")
    source.start()
    wait_for_sound(before)
    metrics = daemon.metrics()
    daemon.stop()
    for kind in ("mkv", "mp4"):
        assert len(files(kind)) == 2
        for path in files(kind):
            assert_in_step(path, 2)
    heard = list(stretches(playlist, tmp_path))
    assert len(heard) == 2
    for path in heard:
        assert_in_step(path, 2)
    assert metrics.sum("framelane_audio_packets_dropped_total", feed="cam") == 0


def test_the_sound_of_a_stall_is_in_its_recordings(framelane, camera, beeping, tmp_path):
    """By UDP the pictures of the stall come before all of its sound."""
    source = camera(beeping("alaw"), audio="alaw")
    input_ = {"url": source.url, "options": {"rtsp_transport": "udp"}, "timeout": "10s"}
    daemon = framelane(one_feed(input_, {**COPY, "audio": AAC},
                                {"rec": {"url": f"{tmp_path}/%s.mkv", "segment": "1s"}})).wait_ready()
    sent = daemon.wait_metrics(lambda m: m.sum("framelane_output_bytes_total", feed="cam") > 20_000,
                               "some sound").sum("framelane_output_bytes_total", feed="cam")
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    daemon.process.send_signal(signal.SIGCONT)
    metrics = daemon.wait_metrics(
        lambda m: m.sum("framelane_output_bytes_total", feed="cam") > 4 * sent, "what came after the stall")
    assert metrics.one("framelane_output_packets_dropped_total", feed="cam", reason="wait_keyframe") <= 2


def test_every_packet_of_sound_is_accounted_for(framelane, beeping, tmp_path):
    """A file without damage: each packet that ffprobe counts comes in and goes out."""
    clip = beeping("aac", seconds=4)
    daemon = framelane(one_feed({"url": str(clip)}, {**x264(), "audio": {"codec": "mp2"}},
                                {"file": {"url": str(tmp_path / "out.ts")}})).wait_ready()
    metrics = daemon.wait_state("cam", "ended")
    streams = media.probe(clip, "-count_packets", "-select_streams", "a")["streams"]
    packets = int(streams[0]["nb_read_packets"])
    for end in ("in", "out"):
        assert metrics.sum(f"framelane_audio_packets_{end}_total", feed="cam") == packets
    daemon.stop()
    assert_in_step(tmp_path / "out.ts", 2)


def test_a_bit_rate_that_aac_does_not_allow_is_lowered_and_logged(framelane, clip, made, tmp_path):
    """Noise needs every bit."""
    noisy = made("noisy.mov", "-i", clip, "-f", "lavfi", "-i", "anoisesrc=sample_rate=8000:duration=4",
                 "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "pcm_alaw")
    out = tmp_path / "out.mp4"
    daemon = framelane(one_feed({"url": str(noisy)}, {**COPY, "audio": AAC},
                                {"file": {"url": str(out)}})).wait_ready()
    daemon.wait_state("cam", "ended")
    assert daemon.log().count("aac takes at most 48000 bit/s at 8000 Hz with 1 channel, not the configured 64000") == 1
    daemon.stop()
    packets = media.probe(out, "-select_streams", "a:0", "-show_entries", "packet=size")["packets"]
    assert 32_000 < sum(int(packet["size"]) for packet in packets) * 8 / 4 <= 48_000


@pytest.mark.parametrize("codec, name", [("aac", "out.mp4"), ("libopus", "out.mkv"),
                                         ("no_such_encoder,aac", None), ("libopus", "out.flv")])
def test_transcode_transcodes_the_sound(cli, beeping, tmp_path, codec, name):
    out = tmp_path / (name or "out.mp4")
    done = cli("transcode", "--json", beeping("alaw", seconds=4), out, "--codec", "copy",
               "--audio", codec)
    if name == "out.flv":  # it cannot hold Opus
        assert done.returncode == 2 and "use aac" in done.stderr
    elif name is None:
        assert done.returncode == 2 and "no_such_encoder" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        sound = json.loads(done.stdout)["audio"]
        assert (sound["codec"], sound["packets_dropped"]) == (codec, 0)
        assert sound["packets_in"] == sound["packets_out"] > 0
        assert_in_step(out, 4)


def test_sound_that_transcode_does_not_bring_over_is_an_error(cli, beeping, tmp_path):
    out = tmp_path / "out.mkv"
    done = cli("transcode", beeping("alaw", seconds=4), out, "--codec", "copy", "--audio", "opus")
    assert done.returncode == 1, done.stderr
    assert "encode main: sound: no audio encoder is available: opus does not open" in done.stderr
    assert "experimental" in done.stderr
    assert not out.exists()


def test_sound_that_transcode_cannot_decode_is_an_error(cli, beeping, tmp_path):
    source, out = tmp_path / "unknown.mov", tmp_path / "out.mp4"
    data = beeping("alaw", seconds=4).read_bytes()
    assert data.count(b"alaw") == 1
    source.write_bytes(data.replace(b"alaw", b"zlaw"))  # a codec that nobody knows
    done = cli("transcode", source, out, "--codec", "copy", "--audio", "aac")
    assert done.returncode == 1, done.stderr
    assert "encode main: sound: an unknown codec cannot be decoded" in done.stderr
    assert not out.exists()


def test_an_encoder_that_does_not_open_leaves_the_sound_to_the_next(cli, beeping, tmp_path):
    out = tmp_path / "out.mp4"
    done = cli("transcode", "--json", beeping("alaw", seconds=4), out, "--codec", "copy",
               "--audio", "opus,aac")
    assert done.returncode == 0, done.stderr
    assert "using aac, because opus does not open" in done.stderr
    sound = json.loads(done.stdout)["audio"]
    assert (sound["codec"], sound["packets_dropped"]) == ("aac", 0)
    assert_in_step(out, 4)


def test_the_summary_of_transcode_tells_what_became_of_the_sound(cli, beeping, tmp_path):
    done = cli("transcode", beeping("alaw", seconds=4), tmp_path / "out.mkv", "--codec", "copy",
               "--audio", "aac")
    assert done.returncode == 0, done.stderr
    assert "; 0 packets of sound dropped" in done.stderr


def test_a_copy_that_the_container_cannot_hold_names_the_remedy(cli, beeping, tmp_path):
    done = cli("transcode", beeping("alaw", seconds=4), tmp_path / "out.mp4", "--codec", "copy")
    assert done.returncode == 0
    assert "pcm_alaw" in done.stderr and "audio: {codec: aac}" in done.stderr
    assert "--audio aac" in done.stderr


def test_a_container_that_cannot_hold_the_encoders_sound_is_found_by_check(cli, tmp_path):
    config = tmp_path / "framelane.yaml"
    config.write_text("""feeds:
  cam:
    input: {url: rtsp://127.0.0.1/a}
    encodes: {main: {video: copy, audio: {codec: [libopus, libvorbis]}}}
    outputs: {push: {url: rtmp://127.0.0.1/a}}
""")
    done = cli("check", "-c", config)
    assert done.returncode == 78
    assert "framelane.yaml:5:" in done.stderr and "nothing that players can read in flv; use aac" in (
        done.stderr)
