"""MPEG-TS by hand, for what no muxer writes (ISO/IEC 13818-1, section 2.4)."""

PACKET = 188


def _crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return crc.to_bytes(4, "big")


def _section(pid, table, number, body):
    """The packets of one section."""
    head = bytes([table]) + (0xB000 | len(body) + 9).to_bytes(2, "big")
    data = head + number.to_bytes(2, "big") + b"\xC1\x00\x00" + body
    data = b"\x00" + data + _crc(data)
    packets = b""
    for count, at in enumerate(range(0, len(data), PACKET - 4)):
        start = 0x40 if at == 0 else 0
        header = bytes([0x47, start | pid >> 8, pid & 0xFF, 0x10 | count & 15])
        packets += (header + data[at:at + PACKET - 4]).ljust(PACKET, b"\xFF")
    return packets


def of_many_streams(count):
    """A stream that announces `count` streams of H.264, of which nothing comes."""
    in_one = 180
    programs = range(1, -(-count // in_one) + 1)
    table = b"".join(number.to_bytes(2, "big") + (0xE000 | 16 + number).to_bytes(2, "big") for number in programs)
    stream = _section(0, 0, 1, table)
    for number in programs:
        first = 256 + (number - 1) * in_one
        body = (0xE000 | first).to_bytes(2, "big") + b"\xF0\x00"
        for pid in range(first, min(first + in_one, 256 + count)):
            body += b"\x1B" + (0xE000 | pid).to_bytes(2, "big") + b"\xF0\x00"
        stream += _section(16 + number, 2, number, body)
    return stream * 3

