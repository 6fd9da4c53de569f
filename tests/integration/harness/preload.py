"""Libraries that are preloaded into framelane and make calls fail or hang."""

import pathlib
import subprocess


def preload(folder, name):
    """(environment that preloads NAME.c, the file that makes the calls fail while it exists)"""
    source = pathlib.Path(__file__).with_name(f"{name}.c")
    library, file = folder / f"{name}.so", folder / name
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), f"FRAMELANE_TEST_{name.upper()}": str(file)}, file
