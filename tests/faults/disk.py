"""A small disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A file system of its own in memory."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", folder], check=True, capture_output=True)

    @property
    def used(self) -> int:
        """Bytes."""
        status = os.statvfs(self.folder)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    def resize(self, size: int) -> None:
        """From now on it holds `size` bytes."""
        self._remount(f"size={size}")

    def make_read_only(self) -> None:
        self._remount("ro")

    def remove(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)

    def _remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.folder], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """A disk at `folder`, for as long as it is used. Skips the test where nobody may mount one."""
    try:
        disk = Disk(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk takes the right to mount one: {error}")
    try:
        yield disk
    finally:
        disk.remove()
