"""Every environment by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from env.navigator.environment import NavigatorEnvironment
from env.protocol import Episode


class Environment(Protocol):
    """Reads instances and plays them; instances have an `id`."""

    name: str

    def read(self, path: Path) -> Iterator[Any]:
        """Instances of a file. InputError with file, line and field."""
        ...

    def episode(self, instance: Any) -> Episode:
        """A fresh episode of an instance."""
        ...


ENVIRONMENTS: dict[str, type[Environment]] = {"navigator": NavigatorEnvironment}
