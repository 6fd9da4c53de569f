"""A producer of frames in shared memory whose packets are written out by hand: GStreamer's protocol,
docs/capture.md. Right or wrong, as a test wants it."""

import fcntl
import mmap
import os
import pathlib
import socket
import struct

from harness.waiting import TIME_FACTOR

_PACKET = struct.Struct("=IiQQ")
_STAMP = struct.Struct("=QQqQ")
_STAMP_MAGIC = 0x31706d6174736c66
_NEW_AREA, _AREA_CLOSED, _FRAME, _ACKNOWLEDGEMENT = 1, 2, 3, 4


class Area:
    """Shared memory with room for `slots` frames, each at a multiple of `slot` bytes."""

    def __init__(self, name, number, frame_bytes, slots, slot=None):
        self.number = number
        self.slot = slot or (frame_bytes + 128 + 4095) // 4096 * 4096
        self.bytes = self.slot * slots
        self.name = "/" + name
        self.path = pathlib.Path("/dev/shm") / name
        descriptor = self._create()
        os.fchmod(descriptor, 0o666)
        os.ftruncate(descriptor, self.bytes)
        self.memory = mmap.mmap(descriptor, self.bytes)
        self._descriptor = descriptor

    def _create(self):
        """Locks the area. Producers that use framelane_capture.h remove areas that nobody has locked, and
        one may do so before the lock is taken."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_nlink > 0:
                    return descriptor
            except BlockingIOError:
                self.path.unlink(missing_ok=True)
            os.close(descriptor)

    def truncate(self, size):
        os.ftruncate(self._descriptor, size)

    def close(self):
        os.close(self._descriptor)
        self.path.unlink(missing_ok=True)


class ShmProducer:
    """Listens on `path`. What it has made is removed by close()."""

    def __init__(self, path, frame_bytes, mode=0o666):
        self.path = path
        self.frame_bytes = frame_bytes
        self.areas = []
        self.connection = None
        self.held = []  # (area, offset) of frames that have not come back
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        os.chmod(path, mode)
        self._server.listen(8)
        self._server.settimeout(20 * TIME_FACTOR)

    def close(self):
        self.disconnect()
        self._server.close()
        self.path.unlink(missing_ok=True)
        for area in self.areas:
            area.close()

    def accept(self):
        """Waits for the next reader."""
        self.disconnect()
        self.connection, _ = self._server.accept()
        self.connection.settimeout(20 * TIME_FACTOR)

    def disconnect(self):
        if self.connection:
            self.connection.close()
        self.connection = None
        self.held = []

    def make_area(self, slots=12, stamped=False, slot=None):
        prefix = "framelane1" if stamped else "shmpipe"
        name = f"{prefix}-test.{os.getpid()}.{id(self)}.{len(self.areas)}"
        self.areas.append(Area(name, len(self.areas), self.frame_bytes, slots, slot))
        return self.areas[-1]

    def send(self, type_, area, first=0, second=0):
        self.connection.sendall(_PACKET.pack(type_, area, first, second))

    def announce_area(self, area, size=None, name=None):
        name = (name or area.name).encode() + b"\0"
        self.send(_NEW_AREA, area.number, size or area.bytes, len(name))
        self.connection.sendall(name)

    def close_area(self, area):
        self.send(_AREA_CLOSED, area.number)

    def announce(self, area, slot, size=None):
        """A frame that lies in the area already."""
        self.held.append((area.number, slot * area.slot))
        self.send(_FRAME, area.number, slot * area.slot, self.frame_bytes if size is None else size)

    def publish(self, area, slot, frame, taken=None, sequence=1):
        """`taken`: when, on time.monotonic(). Without it the frame has no stamp."""
        at = slot * area.slot
        area.memory[at:at + len(frame)] = frame
        if taken is not None:
            at += (len(frame) + 7) // 8 * 8
            area.memory[at:at + _STAMP.size] = _STAMP.pack(_STAMP_MAGIC, sequence, int(taken * 1e9), 0)
        self.announce(area, slot)

    def take_back(self):
        """Waits for one acknowledgement. It must be of a frame that is held."""
        packet = b""
        while len(packet) < _PACKET.size:
            more = self.connection.recv(_PACKET.size - len(packet))
            assert more, "the reader has closed the connection"
            packet += more
        type_, area, offset, _ = _PACKET.unpack(packet)
        assert type_ == _ACKNOWLEDGEMENT
        self.held.remove((area, offset))

    def take_all_back(self):
        while self.held:
            self.take_back()
