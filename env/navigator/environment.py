"""The navigator as one entry of the registry."""

from collections.abc import Iterator
from pathlib import Path

from env.navigator.episode import NavigatorEpisode
from env.navigator.instance import Instance, read_instances
from env.navigator.prompt import static_text
from env.navigator.settings import rules_from


class NavigatorEnvironment:
    """Plays navigator instances; question and map are rendered once for all episodes of an instance."""

    name = "navigator"

    def __init__(self) -> None:
        self._static: dict[str, tuple[Instance, str]] = {}

    def read(self, path: Path) -> Iterator[Instance]:
        """Instances of a file. InputError with file, line and field."""
        return read_instances(path)

    def episode(self, instance: Instance) -> NavigatorEpisode:
        """A fresh episode of an instance."""
        rules = rules_from(instance.env)
        known, static = self._static.get(instance.id, (None, ""))
        # Instances of two files may share an id.
        if known is not instance:
            static = static_text(instance, rules)
            self._static[instance.id] = instance, static
        return NavigatorEpisode(instance, rules, static)
