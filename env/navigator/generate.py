"""Writes a split to a file, over any number of cores, and beside it a report and a data card.

Instances are made in blocks of fixed bounds. A block is a whole number of lines and a whole gzip member or zstd
frame, so that the bytes do not depend on the number of workers, and a run that was stopped goes on after its last
whole block: until the end the file is called F.part, and F.part.journal says where its blocks end.
"""

import gc
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from env.errors import EnvironmentFull
from env.files import atomic_write, disk_full
from env.navigator.audit import Audit, Measured, measure
from env.navigator.card import Sizes, card
from env.navigator.generator import VERSION, make_instance
from env.navigator.instance import Instance, compress, dump_row, from_row, read_rows, to_row
from env.navigator.settings import Settings, get_split
from env.navigator.validator import problems

_MOST_ATTEMPTS = 1000
_BLOCK = 20
"""Instances of a block."""


@contextmanager
def _no_collector() -> Iterator[None]:
    """A document is ten thousand small objects without a cycle: to look for cycles among them takes 7% of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_no_collector()
def good_instance(settings: Settings, split: str, index: int, rejections: Counter[str]) -> Instance:
    """The first attempt at an index that the validator passes; reasons of the others are counted."""
    for attempt in range(_MOST_ATTEMPTS):
        instance = make_instance(settings, split, index, attempt)
        found = problems(instance)
        if found is None:
            return instance
        rejections[found[0]] += 1
    raise AssertionError(f"{settings.profile}/{split}/{index}: no valid instance in {_MOST_ATTEMPTS} attempts")


def instances(settings: Settings, split: str, start: int, n: int) -> Iterator[Instance]:
    """`n` valid instances of a split from index `start`, without a report."""
    get_split(settings, split)
    for index in range(start, start + n):
        yield good_instance(settings, split, index, Counter())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    """What a worker sends back."""

    lines: bytes
    packed: bytes
    """The lines as they stand in the file."""
    rejections: Counter[str]
    measured: list[tuple[Measured, ...]]
    """By instance, for the audit."""
    sizes: Sizes


def _make_block(settings: Settings, split: str, first: int, end: int, suffix: str) -> _Block:
    """Instances `first` up to `end`."""
    rejections: Counter[str] = Counter()
    made = [good_instance(settings, split, index, rejections) for index in range(first, end)]
    lines = "".join(dump_row(to_row(instance)) for instance in made).encode()
    return _Block(
        lines=lines,
        packed=compress(lines, suffix),
        rejections=rejections,
        measured=[measure(instance) for instance in made],
        sizes=Sizes.of(made),
    )


def _blocks(settings: Settings, split: str, bounds: list[tuple[int, int]], suffix: str, workers: int) -> Iterator[_Block]:
    """Every block in order; few wait to be written at any time."""
    if workers == 1:
        for first, end in bounds:
            yield _make_block(settings, split, first, end, suffix)
        return
    waiting: deque[Future[_Block]] = deque()
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin_worker)
    try:
        for first, end in bounds:
            waiting.append(pool.submit(_make_block, settings, split, first, end, suffix))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise EnvironmentFull("a worker process was killed, most likely for memory; use fewer --workers") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Ctrl-C is for the parent, and without it there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


class _Part:
    """The unfinished file: appended to a block at a time, with the journal of what is complete."""

    def __init__(self, out: Path, key: dict[str, Any]) -> None:
        self.out, self.key = out, json.dumps(key, sort_keys=True)
        self.path = out.with_name(f"{out.name}.part")
        self.journal = out.with_name(f"{out.name}.part.journal")
        self.ends: list[int] = []
        """Bytes after each complete block."""
        self.rejections: Counter[str] = Counter()

    def __enter__(self) -> "_Part":
        self.out.parent.mkdir(parents=True, exist_ok=True)
        with disk_full(self.out):
            whole = self._read()
            self._data: IO[bytes] = self.path.open("ab")
            self._data.truncate(self.ends[-1] if self.ends else 0)
            # A journal may end in half a line; what is known to be whole is written anew.
            with atomic_write(self.journal) as stream:
                stream.write("".join(whole))
            self._log: IO[str] = self.journal.open("a", encoding="utf-8")
        return self

    def _read(self) -> list[str]:
        """The journal's whole lines, when they belong to the same work."""
        lines = self.journal.read_text(encoding="utf-8").splitlines(keepends=True) if self.journal.exists() else []
        if not self.path.exists() or not lines or lines[0] != self.key + "\n":
            return [self.key + "\n"]
        whole, size = lines[:1], self.path.stat().st_size
        for line in lines[1:]:
            if not line.endswith("\n"):
                break
            row = json.loads(line)
            if row["end"] > size:
                break
            whole.append(line)
            self.ends.append(row["end"])
            self.rejections.update(row["rejections"])
        return whole

    def add(self, block: _Block) -> None:
        """Append one block, the data before its line in the journal."""
        with disk_full(self.out):
            self._data.write(block.packed)
            self._data.flush()
            self.ends.append(self._data.tell())
            self._log.write(json.dumps({"end": self.ends[-1], "rejections": block.rejections}) + "\n")
            self._log.flush()
        self.rejections.update(block.rejections)

    def finish(self) -> None:
        """The file takes its name."""
        os.fsync(self._data.fileno())
        self.path.replace(self.out)
        self.journal.unlink()

    def __exit__(self, *_: object) -> None:
        self._data.close()
        self._log.close()


def report_path(out: Path) -> Path:
    """Where the report of an instance file stands: F.jsonl -> F.report.json, F.jsonl.gz too."""
    return _beside(out, ".report.json")


def card_path(out: Path) -> Path:
    """Where its data card stands: F.card.md."""
    return _beside(out, ".card.md")


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(out.name.split(".jsonl")[0] + ending)


def generate_file(
    settings: Settings,
    split: str,
    start: int,
    n: int | None,
    out: Path,
    progress: Callable[[int], object] = lambda done: None,
    *,
    workers: int = 1,
) -> dict[str, Any]:
    """Write instances `start` to `start + n` of a split (all of it for None), report and card; returns the report.

    The file is written also when the audit fails; `report["audit"]["passed"]` tells. EnvironmentFull when the disk has no
    room: what is there is kept, and the same call goes on from it.
    """
    size = get_split(settings, split).size if n is None else n
    bounds = [(first, min(first + _BLOCK, start + size)) for first in range(start, start + size, _BLOCK)]
    key = {"profile": settings.profile, "split": split, "start": start, "instances": size, "generator_version": VERSION}
    audit, digest, sizes = Audit(), hashlib.sha256(), Sizes()
    with _Part(out, key | {"block": _BLOCK}) as part:
        done = len(part.ends)
        if done:
            for _, row in read_rows(part.path, out.suffix):
                instance = from_row(row)
                digest.update(dump_row(row).encode())
                audit.add(instance)
                sizes = sizes + Sizes.of([instance])
            progress(sizes.instances)
        for block in _blocks(settings, split, bounds[done:], out.suffix, min(workers, len(bounds) - done) or 1):
            part.add(block)
            digest.update(block.lines)
            for measured in block.measured:
                audit.count(measured)
            sizes = sizes + block.sizes
            progress(block.sizes.instances)
        part.finish()
    rejected = sum(part.rejections.values())
    report = key | {
        "attempts": size + rejected,
        "rejected": rejected,
        "rejection_rate": round(rejected / max(1, size + rejected), 4),
        "rejections": dict(sorted(part.rejections.items())),
        "sizes": sizes.to_dict(),
        "sha256": digest.hexdigest(),
        "audit": audit.report(),
    }
    with atomic_write(report_path(out)) as stream:
        stream.write(json.dumps(report, indent=2) + "\n")
    with atomic_write(card_path(out)) as stream:
        stream.write(card(out.name, settings, report))
    return report
