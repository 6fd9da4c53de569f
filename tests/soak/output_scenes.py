"""Peers, disks and folders that go wrong."""

import contextlib
import os
import random
import shutil
import socket
import time

from harness.waiting import wait_until
from soak.scene import lose, scene
from soak.site import MIN_FREE
from soak.sources import Impostor


@scene("peer", weight=1.5)
def peer_misbehaves(site, dice):
    site.peer.mood = dice.choice(["stall", "reset", "garbage", "absent"])
    yield site.peer.mood
    site.peer.mood = "well"


@scene("push")
def rtmp_peer_misbehaves(site, dice):
    yield from lose(site.push, dice)


@scene("srt")
def srt_peer_misbehaves(site, dice):
    yield from lose(site.srt, dice)


@scene("push")
def rtmp_peer_is_an_impostor(site, dice):
    site.push.kill()
    impostor = Impostor(site.rtmp_port, dice.choice(Impostor.WAYS), random.Random(dice.random()))
    yield impostor.way
    impostor.close()
    site.push.start()


@scene("srt", weight=0.5)
def srt_peer_gets_and_sends_noise(site, dice):
    """What listens at its port speaks no SRT; and noise comes to it when it listens again."""
    noise = random.Random(dice.random())
    site.srt.kill()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as impostor:
        impostor.bind(("127.0.0.1", site.srt_port))
        impostor.settimeout(1)
        for _ in range(20):
            with contextlib.suppress(OSError):
                _, client = impostor.recvfrom(2000)
                impostor.sendto(noise.randbytes(noise.randint(1, 1400)), client)
        yield ""
    site.srt.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(50):
            sender.sendto(noise.randbytes(noise.randint(1, 1400)), ("127.0.0.1", site.srt_port))


@scene("small", weight=2)
def disk_fills(site, dice):
    """Byte by byte or at once; what is written beside it is cut back to what can be played."""
    if not site.small_is_a_disk:
        yield "left out: the right to mount is missing"
        return
    spare = dice.choice([0, 0, 5_000, 100_000])
    filler = site.small / "filler"
    with open(filler, "wb") as file:
        room = os.statvfs(site.small).f_bavail * os.statvfs(site.small).f_frsize
        try:
            file.write(bytes(max(0, room - spare)))
        except OSError:
            pass
    yield f"{spare} bytes are left"
    filler.unlink()


@scene("small")
def disk_gets_scarce(site, dice):
    """The recordings with min_free make room, while there is more than the newest of them."""
    if not site.small_is_a_disk:
        yield "left out: the right to mount is missing"
        return
    less = dice.choice([10_000, MIN_FREE // 2])
    filler = site.small / "filler"

    def free():
        return os.statvfs(site.small).f_bavail * os.statvfs(site.small).f_frsize

    try:
        with contextlib.suppress(OSError), open(filler, "wb") as file:
            file.write(bytes(max(0, free() - MIN_FREE + less)))
        wait_until(lambda: free() >= MIN_FREE or len(list((site.small / "clusters").glob("*.mkv"))) <= 1,
                   f"{MIN_FREE} bytes to be free, or the newest file of those with min_free to be left")
        yield f"{less} bytes too few are free"
    finally:
        filler.unlink()


_FOLDERS = {  # folder: the part of the site that writes there
    "gate": "recordings/gate", "yard": "recordings/yard", "jpeg": "recordings/jpeg",
    "raw": "recordings/raw", "live": "live/gate", "live of yard": "live/yard",
    "small": "small/kept", "small live": "small/hls",
}


def _folder(site, dice):
    name = dice.choice(sorted(_FOLDERS))
    site.playlists_in_doubt |= "live" in name
    return name, site.folder / _FOLDERS[name]


@scene("small", "folders")
def folder_is_locked(site, dice):
    name, folder = _folder(site, dice)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o555)
    yield name
    folder.chmod(0o755)


@scene("small", "folders")
def folder_is_removed(site, dice):
    name, folder = _folder(site, dice)
    shutil.rmtree(folder, ignore_errors=True)
    yield name


@scene("small", "folders")
def folder_is_a_file(site, dice):
    name, folder = _folder(site, dice)
    aside = site.scratch / "aside"
    if folder.exists():
        folder.rename(aside) if folder.parent != site.small else shutil.rmtree(folder)
    for _ in range(20):  # the daemon may make the folder again in between
        try:
            folder.write_text("in the way\n")
            break
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
    yield name
    if folder.is_file():
        folder.unlink()
    shutil.rmtree(aside, ignore_errors=True)


@scene("small", "folders")
def folder_is_a_dangling_link(site, dice):
    name, folder = _folder(site, dice)
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.symlink_to("/nowhere/at/all")
            break
        except OSError:
            pass
    yield name
    if folder.is_symlink():
        folder.unlink()


@scene("small", "folders")
def files_are_deleted_as_they_are_written(site, dice):
    name, folder = _folder(site, dice)
    for _ in range(dice.randint(1, 4)):
        for path in folder.glob("*"):
            path.unlink(missing_ok=True)
        time.sleep(0.3)
    yield name


@scene("live")
def playlist_is_a_folder(site, dice):
    playlist = site.live / dice.choice(["gate", "yard"]) / "index.m3u8"
    site.playlists_in_doubt = True
    for _ in range(20):
        playlist.unlink(missing_ok=True)
        try:
            playlist.mkdir(parents=True)
            break
        except OSError:
            pass
    yield playlist.parent.name
    if playlist.is_dir():
        shutil.rmtree(playlist)


@scene("live")
def playlist_is_damaged(site, dice):
    """Somebody writes into a playlist that the daemon owns: it is written whole again."""
    playlist = site.live / dice.choice(["gate", "yard"]) / "index.m3u8"
    site.playlists_in_doubt = True
    noise = bytes(dice.randrange(256) for _ in range(300))
    if playlist.is_file():
        playlist.write_bytes(dice.choice([b"", noise, b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:-1\n"]))
    yield playlist.parent.name
