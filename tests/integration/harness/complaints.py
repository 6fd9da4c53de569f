"""What a program said on standard error, as far as it is the program's own."""

# Where a container's seccomp filter refuses mlock, libgcrypt says this whenever it is loaded, and
# FFmpeg's libssh loads it: in framelane as in ffmpeg, before main() and on standard error.
_NOT_OURS = "Warning: using insecure memory!\n"


def complaints(text):
    """`text` without that one line."""
    return "".join(line for line in text.splitlines(keepends=True) if line != _NOT_OURS)
