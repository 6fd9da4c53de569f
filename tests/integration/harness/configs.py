"""Pieces of configurations that most tests share."""

from harness.camera import free_port

# A camera is lost after a second of silence, and the next try comes at once.
IMPATIENT = {"timeout": "1s", "reconnect": {"first": "100ms", "max": "300ms"}}


def encoder(name, gop=None, convert=None, **options):
    """An encode with this encoder."""
    video = {"codec": [{"name": name, "options": options}]}
    if gop:
        video["gop"] = gop
    return {"video": video, **({"convert": convert} if convert else {})}


def x264(gop="1s", **options):
    return encoder("libx264", gop=gop, **{"preset": "ultrafast", **options})


COPY = {"video": "copy"}
# Where this lies, pictures are white, which survives an encoder.
ALL_WHITE = {"polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "color": "#ffffff"}


def raw_input(path, pixel_format, size, rate=25, **keys):
    return {"url": str(path), "format": "rawvideo", "pixel_format": pixel_format, "size": size,
            "rate": rate, **keys}


def looped(path, **keys):
    """A file that is read like a camera: at its own rate, and without end."""
    return {"url": str(path), "loop": True, "pace": "realtime", **keys}


def one_feed(input_, encode=None, outputs=None, **keys):
    """A configuration of a single feed called cam."""
    feed = {"input": input_, "encodes": {"main": encode or x264()}, "outputs": outputs or {}, **keys}
    return {"feeds": {"cam": feed}}


def every_kind_of_feed(clip, folder):
    """Feeds that have together every kind of series: one that decodes, one that copies, and two whose source is dead."""
    return {
        "live": {"input": looped(clip), "skip": "nonref", "encodes": {"main": x264()}, "analyse": True,
                 "outputs": {"hls": {"url": str(folder / "hls" / "index.m3u8")}}},
        "copied": {"input": looped(clip), "encodes": {"main": {**COPY, "audio": {"codec": "aac"}}},
                   "outputs": {"out": {"url": "null:"}}},
        "dead": {"input": {"url": f"rtsp://127.0.0.1:{free_port()}/", **IMPATIENT}},
        "capture": {"input": raw_input(f"shm:{folder}/absent", "bgra", "64x48", **IMPATIENT)},
    }


def dead_hooks():
    """A hook whose receiver is not there."""
    return [{"name": "dead", "on": "segment", "url": f"http://127.0.0.1:{free_port()}/"}]


def with_a_file_each(input_, encodes, folder, suffix="", format_=None, **keys):
    """A configuration of a single feed called cam whose encodes have a file each, of their names."""
    config = one_feed(input_, **keys)
    kind = {"format": format_} if format_ else {}
    config["feeds"]["cam"].update(encodes=encodes, outputs={
        name: {"from": name, "url": str(folder / f"{name}{suffix}"), **kind} for name in encodes})
    return config


def beside_another(config, clip):
    """The configuration with a second feed, called other, which faults of cam must not affect."""
    config["feeds"]["other"] = {"input": looped(clip), "encodes": {"main": x264()}}
    return config
