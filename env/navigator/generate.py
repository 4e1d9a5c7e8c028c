"""Writes a split to a file, and beside it a report: attempts, rejections by reason, the confound audit."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from env.files import atomic_write
from env.navigator.audit import Audit
from env.navigator.generator import VERSION, make_instance
from env.navigator.instance import Instance, to_row, write_rows
from env.navigator.settings import Settings, get_split
from env.navigator.validator import problems

_MOST_ATTEMPTS = 1000


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


def report_path(out: Path) -> Path:
    """Where the report of an instance file stands: F.jsonl -> F.report.json, F.jsonl.gz too."""
    return out.with_name(out.name.split(".jsonl")[0] + ".report.json")


def generate_file(
    settings: Settings, split: str, start: int, n: int | None, out: Path, progress: Callable[[int], object] = lambda done: None
) -> dict[str, Any]:
    """Write instances `start` to `start + n` of a split (all of it for None) and the report; returns the report.

    The file is written also when the audit fails; `report["audit"]["passed"]` tells.
    """
    size = get_split(settings, split).size if n is None else n
    rejections: Counter[str] = Counter()
    audit = Audit()

    def rows() -> Iterator[dict[str, Any]]:
        for index in range(start, start + size):
            instance = good_instance(settings, split, index, rejections)
            audit.add(instance)
            progress(1)
            yield to_row(instance)

    written = write_rows(out, rows())
    rejected = sum(rejections.values())
    report = {
        "profile": settings.profile,
        "split": split,
        "start": start,
        "instances": written,
        "generator_version": VERSION,
        "attempts": written + rejected,
        "rejected": rejected,
        "rejection_rate": round(rejected / max(1, written + rejected), 4),
        "rejections": dict(sorted(rejections.items())),
        "audit": audit.report(),
    }
    with atomic_write(report_path(out)) as stream:
        stream.write(json.dumps(report, indent=2) + "\n")
    return report
