#!/usr/bin/env python3
"""Holds every #include of the project against the direction in which dependencies point.

    check_rooms.py SOURCE_DIR ROOM:ROOM,ROOM...      (the rooms of pipeline/ and what each links)

Prints each wrong include as FILE:LINE and exits with 1.
"""
import pathlib
import re
import sys

# kernels <- pipeline <- config <- daemon; the benchmarks stand beside the daemon.
FOLDERS = {
    "kernels": {"kernels"},
    "pipeline": {"kernels", "pipeline"},
    "config": {"kernels", "pipeline", "config"},
    "daemon": {"kernels", "pipeline", "config", "daemon"},
    "bench": {"kernels", "pipeline", "config", "bench"},
    "tune": {"kernels", "pipeline", "config", "bench", "tune"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


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


def main():
    root = pathlib.Path(sys.argv[1])
    rooms = {}
    for argument in sys.argv[2:]:
        name, links = argument.split(":")
        rooms[name] = [room for room in links.split(",") if room]
    allowed_rooms = with_all_below(rooms)

    seen = 0
    wrong = []
    for folder, allowed in FOLDERS.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".hpp", ".cpp", ".cu", ".cuh"}:
                continue
            parts = path.relative_to(root).parts
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                seen += 1
                target = match.group(1).split("/")
                where = f"{path.relative_to(root)}:{number}: {folder}"
                if len(target) == 1 or not (root / match.group(1)).is_file():
                    wrong.append(f"{where} includes {match.group(1)}, which is not named from the root")
                elif target[0] not in allowed:
                    wrong.append(f"{where} must not include {match.group(1)}")
                elif folder == target[0] == "pipeline" and target[1] not in allowed_rooms[parts[1]]:
                    wrong.append(f"{where}/{parts[1]} must not include {match.group(1)}")
    print("\n".join(wrong))
    if seen < 500 or len(rooms) < 5:
        sys.exit(f"only {seen} includes and {len(rooms)} rooms were found: the check itself is broken")
    sys.exit(1 if wrong else 0)


main()
