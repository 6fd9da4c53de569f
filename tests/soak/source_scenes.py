"""Cameras and other sources that go wrong."""

import contextlib
import os
import random
import socket
import time

from harness import media
from harness.shm_producer import ShmProducer
from soak.clips import RAW_FRAME
from soak.scene import lose, scene
from soak.sources import Impostor, write_whole


def _camera(site, dice, feed):
    """Kills or freezes a camera, or lets it flap."""
    camera = getattr(site, feed)
    way = dice.choice(["killed", "frozen", "flapping", "killed for a while"])
    if way == "flapping":
        for pause in [dice.uniform(0, 1.5) for _ in range(dice.randint(2, 5))]:
            camera.kill()
            time.sleep(pause)
            camera.start()
            time.sleep(pause)
    elif way == "frozen":
        camera.freeze()
    else:
        camera.kill()
    yield f"{feed} {way}"
    if way == "frozen":
        camera.thaw()
        camera.kill()  # clients that were cut off stay in a thawed server, and slow it
    if way != "flapping":
        camera.start()


@scene("gate")
def gate_camera(site, dice):
    yield from _camera(site, dice, "gate")


@scene("yard")
def yard_camera(site, dice):
    yield from _camera(site, dice, "yard")


@scene("clock", weight=2)
def clock_camera(site, dice):
    yield from _camera(site, dice, "clock")


@scene("yard", "folders", weight=2)
def yard_changes_format(site, dice):
    """Another codec, size or frame rate; FLV cannot hold HEVC (before FFmpeg 6.1), and no
    other output may care."""
    clip, video = dice.choice([(site.clips.hevc, "h265"), (site.clips.wide, "h264"),
                               (site.clips.night, "h264")])
    site.yard.kill()
    site.yard.start(clip, video)
    yield clip.stem
    try:
        if video == "h265":
            site.daemon.wait_metrics(
                lambda m: not m.one("framelane_output_up", feed="yard", output="push")
                and all(m.one("framelane_output_up", feed="yard", output=name)
                        for name in ("record", "hls", "viewing")),
                "push, as FLV, to be down, and it alone, while the camera sends HEVC", deadline=25)
            push = site.daemon.feed("yard")["outputs"]["push"]
            assert push["reason"], "push is down without a reason"
    finally:
        site.yard.kill()
        site.yard.start()


@scene("gate", weight=0.5)
def gate_gets_another_password(site, dice):
    password = f"n3w/{dice.randrange(10**6)}@:%41 #?$x"
    site.gate.kill()
    site.gate.start(password=password)
    yield password
    site.set_password(password)
    site.daemon.restart_feed("gate")


def _http(site, dice, server, moods):
    server.mood = dice.choice(moods)
    yield server.mood
    server.mood = "well"


@scene("jpeg", weight=1.5)
def jpeg_misbehaves(site, dice):
    yield from _http(site, dice, site.jpeg,
                     ["refuse", "garbage", "redirect", "stall", "cut", "noise"])


@scene("jpeg")
def jpeg_is_slow(site, dice):
    """A picture each second or two: the times of a recording must be those of the pictures."""
    site.jpeg.interval = dice.uniform(0.7, 1.6)
    yield f"a picture each {site.jpeg.interval:.1f} s"
    site.jpeg.interval = 0.15


@scene("web")
def relay_misbehaves(site, dice):
    yield from _http(site, dice, site.web, ["refuse", "garbage", "redirect", "stall"])


@scene("web")
def relay_gets_an_evil_playlist(site, dice):
    number = dice.randrange(len(site.web.EVIL))
    site.web.evil, site.web.mood = site.web.EVIL[number], "evil"
    yield f"number {number}"
    site.web.mood = "well"


@scene("gate", weight=1.5)
def gate_is_an_impostor(site, dice):
    site.gate.kill()
    impostor = Impostor(site.gate.port, dice.choice(Impostor.WAYS), random.Random(dice.random()))
    yield impostor.way
    impostor.close()
    site.gate.start()


@scene("wire", weight=1.5)
def wire_is_an_impostor(site, dice):
    site.wire.kill()
    impostor = Impostor(site.wire_port, dice.choice(Impostor.WAYS), random.Random(dice.random()))
    yield impostor.way
    impostor.close()
    site.wire.start()


@scene("raw", weight=1.5)
def fifo_misbehaves(site, dice):
    lives = site.lives
    site.fifo.mood = dice.choice(["stall", "gone"])
    yield site.fifo.mood
    if site.lives != lives:  # a new process cannot know how much of a frame the old one has read
        site.fifo.mood = "gone"
        time.sleep(0.5)
    site.fifo.mood = "well"


@scene("raw")
def fifo_is_taken_over(site, dice):
    """Its writer stalls in the middle of a frame for longer than the timeout, and dies after another
    one has come and has written whole frames."""
    frames = dice.randint(1, 20)
    site.fifo.mood = "stall"
    yield f"{frames} frames by another writer"
    time.sleep(2.5)
    descriptor = site.fifo.open()
    if descriptor is not None:
        with contextlib.suppress(BrokenPipeError):
            for _ in range(frames):
                write_whole(descriptor, RAW_FRAME)
                time.sleep(0.02)
        os.close(descriptor)
    site.fifo.mood = "gone"
    time.sleep(0.5)
    site.fifo.mood = "well"


@scene("raw")
def fifo_is_slow(site, dice):
    site.fifo.interval = dice.uniform(0.5, 1.8)
    yield f"a frame each {site.fifo.interval:.1f} s"
    site.fifo.interval = 0.1


@scene("shm")
def shm_falls_silent(site, dice):
    yield from lose(site.shm, dice)


@scene("shm", weight=1.5)
def shm_misbehaves(site, dice):
    """Another producer: its areas shrink, its frames have another size, or it talks nonsense."""
    way = dice.choice(["shrinks", "other size", "nonsense", "silent", "many areas"])
    noise = dice.randbytes(500)
    site.shm.kill()
    site.shm_socket.unlink(missing_ok=True)
    producer = ShmProducer(site.shm_socket, len(RAW_FRAME))
    with contextlib.suppress(OSError, AssertionError):  # the daemon may close the connection first
        producer.accept()
        for number in range(200 if way == "many areas" else 1):
            area = producer.make_area()
            producer.announce_area(area)
            for slot in range(3):
                size = len(RAW_FRAME) // 2 if way == "other size" else None
                if way != "silent":
                    producer.announce(area, slot, size)
            if way == "shrinks":
                area.truncate(0)
            if way == "nonsense":
                producer.connection.sendall(noise)
            if way == "many areas":
                producer.take_all_back()
                producer.close_area(area)
    yield way
    producer.close()
    site.shm.start()


@scene("udp")
def udp_falls_silent(site, dice):
    yield from lose(site.udp, dice)


@scene("wire")
def wire_falls_silent(site, dice):
    yield from lose(site.wire, dice)


@scene("rtp")
def rtp_falls_silent(site, dice):
    yield from lose(site.rtp, dice)


@scene("udp", "rtp", weight=1.5)
def datagrams_of_noise(site, dice):
    """Anybody can send to a UDP port: noise, and damaged pieces of a real stream."""
    noise = random.Random(dice.random())
    stream = media.ffmpeg("-i", site.clips.street, "-t", 1, "-c", "copy", "-f", "mpegts", "-")
    ports = dice.choice([[site.udp_port], [site.rtp_port], [site.udp_port, site.rtp_port]])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(dice.randint(20, 300)):
            if noise.random() < 0.5:
                data = noise.randbytes(noise.randint(1, 1400))
            else:
                start = 188 * noise.randrange(len(stream) // 188)
                data = bytearray(stream[start : start + 1316])
                data[noise.randrange(len(data))] ^= 1 << noise.randrange(8)
            sender.sendto(data, ("127.0.0.1", noise.choice(ports)))
            time.sleep(0.005)
    yield f"to {len(ports)} ports"
