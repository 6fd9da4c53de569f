"""What a program wrote to standard error, without a line of one of its libraries."""

# libgcrypt writes this to standard error when it is loaded and a container's seccomp filter refuses
# mlock. FFmpeg's libssh loads it before main(), in framelane as well as in ffmpeg.
_NOT_OURS = "Warning: using insecure memory!\n"


def complaints(text):
    """`text` without the line of libgcrypt."""
    return "".join(line for line in text.splitlines(keepends=True) if line != _NOT_OURS)
