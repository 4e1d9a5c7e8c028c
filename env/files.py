"""Files that appear whole or not at all: written under a temporary name, synced, renamed; and the cores to write them with."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from env.errors import EnvironmentFull


@contextmanager
def disk_full(path: Path) -> Iterator[None]:
    """EnvironmentFull in place of the system's error when writing `path` finds no room."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise EnvironmentFull(f"{path}: no space left on the disk; free some or choose another --out") from error
        raise


@contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO]:  # type: ignore[type-arg]
    """Open a temporary neighbour of `path` that takes its name when the block ends without an exception.

    The parent folder is made. EnvironmentFull when the disk has no room.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with disk_full(path), temporary.open(mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A temporary neighbour of folder `path` that takes its place when the block ends without an exception.

    The parent folder is made; an older `path` is removed only after the new one is complete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        with disk_full(path):
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    with file.open("rb") as stream:
                        os.fsync(stream.fileno())
        if path.exists():
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            path.rename(old)
            temporary.rename(path)
            shutil.rmtree(old)
        else:
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def cores() -> int:
    """Cores that this process may use, which a scheduler may have made fewer than the machine has."""
    return len(os.sched_getaffinity(0))
