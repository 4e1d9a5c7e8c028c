"""The navigator as one entry of the registry."""

from collections.abc import Iterator
from pathlib import Path

from env.navigator.episode import NavigatorEpisode
from env.navigator.generate import instances
from env.navigator.instance import Instance, read_instances
from env.navigator.prompt import static_text
from env.navigator.settings import get_profile, get_split, rules_from

_KEPT = 256
"""Instances whose rendered text is kept: more than have episodes in flight at once."""


class NavigatorEnvironment:
    """The instances of one split, made when they are asked for, and episodes of these or of any others.

    Question and map are rendered once for all episodes of an instance.
    """

    name = "navigator"
    summary = "answer a multi-hop question over a document far larger than what may be held"

    def __init__(self, *, profile: str = "v1", split: str = "train") -> None:
        """SettingError for a profile or split that does not exist; see env/navigator/settings.py."""
        self.settings = get_profile(profile)
        self.split = split
        self._size = get_split(self.settings, split).size
        self._static: dict[str, tuple[Instance, str]] = {}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Instance:
        """Instance `index` of the split, the same one each time."""
        return next(instances(self.settings, self.split, range(self._size)[index], 1))

    def __iter__(self) -> Iterator[Instance]:
        return instances(self.settings, self.split, 0, self._size)

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
            if len(self._static) >= _KEPT:
                del self._static[next(iter(self._static))]
            self._static[instance.id] = instance, static
        return NavigatorEpisode(instance, rules, static)
