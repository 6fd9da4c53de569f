"""File systems that are soon full."""

import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def file_system(folder, size):
    """A file system of `size` bytes, mounted at the new `folder`. Skips the test where that needs root."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
                             capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
