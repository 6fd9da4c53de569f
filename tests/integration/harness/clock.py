"""Pictures that show what time it is: each has its number, in blocks of light and dark. A camera shows the
picture with the number T * RATE at the time T; after PICTURES it begins again."""

RATE = 25
GROUP = 16  # pictures from one keyframe to the next
PICTURES = 1024
_BITS = 10
_BLOCK = 16
_WIDTH, _HEIGHT = _BITS * _BLOCK, 32
PERIOD = PICTURES / RATE

# ffmpeg's arguments for the pictures, as a stream of H.264.
ARGUMENTS = ["-f", "lavfi", "-i", f"color=black:size={_WIDTH}x{_HEIGHT}:rate={RATE},format=yuv420p,"
             f"geq=lum='if(mod(floor(N/pow(2\\,floor(X/{_BLOCK})))\\,2)\\,235\\,16)':cb=128:cr=128",
             "-frames:v", PICTURES, "-c:v", "libx264", "-preset", "ultrafast", "-g", GROUP, "-keyint_min",
             GROUP, "-sc_threshold", 0, "-bf", 0, "-bsf:v", "h264_metadata=aud=insert", "-f", "h264"]


def read(luma):
    """When each of these pictures was taken, in seconds modulo PERIOD. `luma`: decoded to gray."""
    size = _WIDTH * _HEIGHT
    assert len(luma) % size == 0
    row = (_HEIGHT // 2) * _WIDTH + _BLOCK // 2
    return [sum((luma[start + row + bit * _BLOCK] > 128) << bit for bit in range(_BITS)) / RATE
            for start in range(0, len(luma), size)]


def apart(one, other):
    """The distance of two times of which only the remainder by PERIOD is known."""
    distance = (one - other) % PERIOD
    return min(distance, PERIOD - distance)
