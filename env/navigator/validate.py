"""Re-reads and re-checks an instance file."""

from collections.abc import Iterator
from pathlib import Path

from env.navigator.instance import from_row, read_rows
from env.navigator.validator import problems


def validate_file(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(`path:line`, instance id, complaints) of every instance; no complaints means it is fine.

    InputError for a line that is no instance at all.
    """
    for where, row in read_rows(path):
        instance = from_row(row, where)
        found = problems(instance)
        yield where, instance.id, [] if found is None else [f"{found[0]}: {text}" for text in found[1]]
