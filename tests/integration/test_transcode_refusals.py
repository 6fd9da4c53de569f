"""Command lines of `framelane transcode` that cannot be right."""

import pytest


# Command lines that cannot be right: name, arguments, words of the message.
WRONG = {
    "option": (["--option", "no_such_option=1"], "no_such_option is not an option of libx264"),
    "value of an option": (["--option", "crf=low"], "crf is refused by libx264"),
    "option without a value": (["--option", "crf"], "not K=V"),
    "codec": (["--codec", "libx265k"], 'did you mean "libx265"?'),
    "container": (["--format", "matrosca"], 'did you mean "matroska"?'),
    "demuxer": (["--input-format", "no-such"], "is not a demuxer"),
    "copy and an option": (["--codec", "copy", "--option", "crf=20"], "--option has no effect"),
    "copy and a bit rate": (["--codec", "copy", "--bitrate", "1M"], "--bitrate has no effect"),
    "pixel format": (["--pixel-format", "p010le"], "--pixel-format p010le: not one of yuv420p"),
    "copy and a pixel format": (["--codec", "copy", "--pixel-format", "nv12"],
                                "--pixel-format has no effect"),
    "copy and a colour": (["--codec", "copy", "--range", "full"], "--range has no effect"),
    "copy among others": (["--codec", "copy,libx264"], "cannot be combined with an encoder"),
    "bit rate": (["--bitrate", "0"], "--bitrate 0"),
    "bit rate beyond the limits": (["--bitrate", "100G"],
                                   "--bitrate 100G: not a bit rate such as 800k or 2M, from 1k to 10G"),
    "gop beyond the limits": (["--gop", "1h"],
                              "--gop 1h: not a duration such as 500ms, 10s, 5m, 1h or 7d, from 10ms to 10m"),
    "gop below the limits": (["--gop", "1ms"], "from 10ms to 10m"),
    "duration": (["--duration", "0s"], "--duration 0s"),
    "matrix": (["--matrix", "bt2021"], "--matrix bt2021"),
    "siting": (["--siting", "middle"], "--siting middle"),
    "lanes": (["--lanes", "0"], "--lanes"),
    "ring": (["--ring", "0"], "--ring"),
    "slices": (["--slices", "17"], "--slices"),
    "device": (["--device", "gpu"], "cuda:N"),
    "raw size without the format": (["--input-size", "4x4"], "--input-pixel-format"),
    "raw pixel format": (["--input-pixel-format", "p010le", "--input-size", "4x4"], "bgra"),
    "part": (["--crop", "foo"], "--crop foo: not a part of the picture such as 640x480+0+120"),
    "size": (["--size", "0x2"], "--size 0x2: not a size such as 1280x720"),
    "field of a text": (["--overlay-text", "%Q"], "--overlay-text has %Q"),
    "text of nothing": (["--overlay-text", ""], "--overlay-text: "),
    "copy and a part": (["--codec", "copy", "--crop", "2x2+0+0"], "--crop has no effect"),
    "copy and a size": (["--codec", "copy", "--size", "50%"], "--size has no effect"),
    "copy and a text": (["--codec", "copy", "--overlay-text", "x"], "--overlay-text has no effect"),
    "raw size": (["--input-pixel-format", "bgra", "--input-size", "4x0"], "--input-size 4x0"),
}


@pytest.mark.parametrize("arguments, words", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_command_line_is_one_line_and_exit_2(cli, clip, tmp_path, arguments, words):
    done = cli("transcode", clip, tmp_path / "out.mkv", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_a_wrong_option_does_not_hide_another_one(cli, clip, tmp_path):
    done = cli("transcode", clip, tmp_path / "out.mkv", "--codec", "mpeg4,libx264",
               "--option", "presett=fast", "--option", "crf=low")
    assert done.returncode == 2, done.stderr
    unknown, refused = done.stderr.splitlines()
    assert "--option presett is not an option of mpeg4" in unknown
    assert "--option crf is not an option of mpeg4" in refused
    assert "is refused by libx264" in refused


@pytest.mark.parametrize("source, target, words", [
    ("FILE:x", "out.mkv", "in lower case only; write file:"),
    ("htttp://h/x", "out.mkv", "INPUT begins with"), ("{clip}", "nul:", "OUTPUT begins with"),
    ("{clip}", "out.mp5", "give --format"),
    ("in\n.mkv", "out.mkv", "INPUT must be text that is not empty and has no control characters"),
    ("", "out.mkv", "INPUT must be text that is not empty"),
    ("{clip}", "o\x1b[2Jut.mkv", "OUTPUT must be text that is not empty and has no control characters"),
    ("{clip}", "", "OUTPUT must be text that is not empty"),
])
def test_a_wrong_place_is_one_line_and_exit_2(cli, clip, tmp_path, source, target, words):
    done = cli("transcode", source.format(clip=clip), target, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("source, target, words", [
    ("rtsp://u:${{file:/no-such}}@h/", "out.mkv", "/no-such"),
    ("${{FRAMELANE_NOT_SET}}", "out.mkv", "FRAMELANE_NOT_SET"),
    ("{clip}", "${{file:no-such}}.mkv", "no-such"),
])
def test_a_name_that_is_not_set_is_one_line_and_exit_78(cli, clip, tmp_path, source, target, words):
    done = cli("transcode", source.format(clip=clip), target.format(), cwd=tmp_path)
    assert done.returncode == 78, done.stderr
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_a_secret_in_the_name_of_the_output_is_not_shown(cli, clip, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cr3t-name")
    (tmp_path / "s3cr3t-name.mkv").write_text("precious")
    done = cli("transcode", clip, f"{tmp_path}/${{file:{secret}}}.mkv")
    assert done.returncode == 1 and "-y" in done.stderr
    assert "s3cr3t" not in done.stderr
