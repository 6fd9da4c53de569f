#!/usr/bin/env python3
"""Holds every #include of the project against the direction in which dependencies point.

    check_rooms.py SOURCE_DIR ROOM:ROOM,ROOM...      (the rooms of pipeline/ and what each links)

Prints each wrong include as FILE:LINE: INCLUDE: WHY and exits with 1.
"""
import pathlib
import re
import sys

# kernels <- pipeline <- config <- daemon; the benchmarks stand beside the daemon. capture stands alone; its
# header has the contract of the capture time.
FOLDERS = {
    "capture": {"capture"},
    "kernels": {"kernels"},
    "pipeline": {"kernels", "pipeline", "capture"},
    "config": {"kernels", "pipeline", "config"},
    "daemon": {"kernels", "pipeline", "config", "daemon"},
    "bench": {"kernels", "pipeline", "config", "capture", "bench"},
    "tune": {"kernels", "pipeline", "config", "bench", "tune"},
}
# Libraries that only some sources may use: what the names of their headers start with, and the folders and
# files that may include them. A folder that is not listed, new ones too, must not.
LIBRARIES = {
    "FFmpeg": (("libav", "libsw", "libpostproc"), (
        "pipeline/av", "pipeline/frames", "pipeline/stage/cuda", "pipeline/packets", "pipeline/source",
        "pipeline/encode", "pipeline/output", "pipeline/feed", "config/av_names.cpp", "daemon",
        "bench/product/cpu_peers.cpp")),
    "CUDA": (("cuda", "cub/", "cupti", "nv", "npp", "thrust/"), (
        "kernels/cuda", "pipeline/stage/cuda", "bench")),
    "Pango": (("pango", "fontconfig", "glib", "ft2build", "freetype", "hb"), (
        "pipeline/overlay/fonts.hpp", "pipeline/overlay/fonts.cpp", "pipeline/overlay/text_painter.cpp")),
    "PNG": (("png.h",), ("pipeline/overlay/overlay_image.cpp",)),
    "YAML": (("yaml-cpp",), ("config",)),
    "HTTP": (("microhttpd",), ("daemon",)),
    "GnuTLS": (("gnutls/",), ("config", "daemon")),
    "libcurl": (("curl/",), ("config/hook_keys.cpp", "daemon/http_client.cpp")),
    "Prometheus": (("prometheus",), ("daemon",)),
    "zlib": (("zlib.h",), ("daemon/gzip.cpp",)),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def with_all_below(rooms):
    """What a room may include: itself, what it links, and what that links in turn."""
    below = {}

    def visit(name):
        if name not in below:
            below[name] = {name}.union(*(visit(other) for other in rooms[name]))
        return below[name]

    for room in rooms:
        visit(room)
    return below


def why_not_library(path, include):
    """Why the file at `path` must not include <include>, or None if it may."""
    for library, (prefixes, users) in LIBRARIES.items():
        if include.startswith(prefixes) and not any(f"{path}/".startswith(f"{user}/") for user in users):
            return f"this file must not use {library} (LIBRARIES in tests/check_rooms.py says which may)"
    return None


def why_not_ours(root, path, include, allowed_rooms):
    """Why the file at `path` must not include "include", or None if it may."""
    folder, room = path.parts[:2]
    target = include.split("/")
    if folder == "capture":
        return None if include == "framelane_capture.h" else "programs copy its two files, and nothing else"
    if len(target) == 1 or not (root / include).is_file():
        return "it is not named from the root of the checkout"
    if target[0] not in FOLDERS[folder]:
        return f"{folder} may include only {', '.join(sorted(FOLDERS[folder]))}"
    if folder == target[0] == "pipeline":
        allowed = allowed_rooms.get(room)
        if not allowed:
            return f"{path.parent} is no room of pipeline/CMakeLists.txt"
        if target[1] not in allowed:
            return f"of the rooms, pipeline/{room} may include only {', '.join(sorted(allowed))}"
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    rooms = {}
    for argument in sys.argv[2:]:
        name, links = argument.split(":")
        rooms[name] = [room for room in links.split(",") if room]
    allowed_rooms = with_all_below(rooms)

    ours = 0
    libraries = set()
    wrong = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".hpp", ".cpp", ".cu", ".cuh", ".h", ".c"}:
                continue
            path = file.relative_to(root)
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                quote, include = match.groups()
                if quote == '"':
                    ours += 1
                    why = why_not_ours(root, path, include, allowed_rooms)
                else:
                    libraries.update(
                        name for name, (prefixes, _) in LIBRARIES.items() if include.startswith(prefixes))
                    why = why_not_library(path, include)
                if why:
                    wrong.append(f"{path}:{number}: {include}: {why}")
    for line in wrong:
        print(line)
    if ours < 500 or len(rooms) < 5 or len(libraries) < len(LIBRARIES):
        sys.exit(f"only {ours} includes, {len(rooms)} rooms and the libraries {sorted(libraries)} were found: "
                 "the check itself is broken")
    sys.exit(1 if wrong else 0)


main()
