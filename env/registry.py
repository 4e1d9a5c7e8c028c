"""Every environment by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from env.errors import SettingError
from env.navigator.environment import NavigatorEnvironment
from env.protocol import Episode


class Environment(Protocol):
    """A sequence of instances and the episodes on them; instances have an `id`."""

    name: str
    summary: str
    """What it asks for, in one line."""

    def __len__(self) -> int:
        """Number of instances."""
        ...

    def __getitem__(self, index: int) -> Any:
        """One instance, made when it is asked for; the same each time."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """All instances in order, one at a time."""
        ...

    def read(self, path: Path) -> Iterator[Any]:
        """Instances of a file. InputError with file, line and field."""
        ...

    def episode(self, instance: Any) -> Episode:
        """A fresh episode of an instance."""
        ...


ENVIRONMENTS: dict[str, type[Environment]] = {"navigator": NavigatorEnvironment}


def make(name: str, **options: Any) -> Environment:
    """An environment by name. SettingError for a name that is none."""
    if name not in ENVIRONMENTS:
        raise SettingError(f"environment {name!r} is unknown: use one of {', '.join(ENVIRONMENTS)}")
    return ENVIRONMENTS[name](**options)
