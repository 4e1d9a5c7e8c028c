"""Environments of stateless steps. Imports nothing heavier than the standard library, and not even that before it is used.

environment = make("navigator", profile="laptop", split="train")
episode = environment.episode(environment[0])
while episode.reward is None:
    episode.step(policy(episode.observe()))
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from env.registry import Environment

__all__ = ["list_environments", "make"]


def make(name: str, **options: Any) -> "Environment":
    """An environment by name: `len()` instances by index, each made when it is asked for, and `episode(instance)`.

    "navigator" takes `profile` ("v1", the public task, or "laptop") and `split` ("train", "dev", "id_test", "ood_test").
    SettingError for a name, profile or split that does not exist.
    """
    from env import registry

    return registry.make(name, **options)


def list_environments() -> dict[str, str]:
    """Every name that `make` takes, and in one line what the environment asks for."""
    from env.registry import ENVIRONMENTS

    return {name: environment.summary for name, environment in ENVIRONMENTS.items()}
