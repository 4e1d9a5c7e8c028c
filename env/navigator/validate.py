"""Re-reads and re-checks an instance file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from env.navigator.instance import from_row, read_rows
from env.navigator.validator import problems, unchecked


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What was found in one instance."""

    where: str
    """`path:line`."""
    instance_id: str
    complaints: tuple[str, ...]
    """Empty for a good one."""
    unchecked: tuple[str, ...]
    """Checks that could not be made: another system's grammar."""


def validate_file(path: Path) -> Iterator[Verdict]:
    """A verdict on every instance. InputError for a line that is no instance at all."""
    for where, row in read_rows(path):
        instance = from_row(row, where)
        skipped = unchecked(instance)
        check, found = problems(instance, skipped) or ("", [])
        yield Verdict(where=where, instance_id=instance.id, complaints=tuple(f"{check}: {text}" for text in found), unchecked=skipped)
