"""What every environment of the registry keeps to, checked by playing it.

The checks know no environment: they play its first instance with responses that mean nothing to them. All complaints
are collected, so that a new environment is told everything at once.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from env.protocol import Episode, Observation
from env.registry import Environment

MOST_STEPS = 1000
"""An episode that takes anything for so long never ends."""


def violations(build: Callable[[], Environment], responses: Sequence[str] = ("", "nothing that is an action")) -> list[str]:
    """What an environment does that it may not; empty for a good one.

    `build` makes it anew each time. `responses` are given in turn, again and again, until the episode ends.
    """
    return [complaint for check in CHECKS for complaint in check(build, responses)]


def _first_episode(build: Callable[[], Environment]) -> Episode:
    environment = build()
    return environment.episode(environment[0])


def _play(episode: Episode, responses: Sequence[str], looks: int = 1) -> tuple[list[Observation], list[Any]]:
    """The prompts and what came of an episode that is looked at `looks` times before each step."""
    prompts: list[Observation] = []
    outcome: list[Any] = []
    for response in islice(cycle(responses), MOST_STEPS):
        if episode.ending is not None:
            break
        prompts += [episode.observe() for _ in range(looks)]
        outcome += [episode.step(response), episode.reward]
    return prompts, [*outcome, episode.ending, episode.info(), episode.metrics()]


def _same_episode(build: Callable[[], Environment], responses: Sequence[str]) -> Iterator[str]:
    """Same seed, same episode."""
    one, other = build(), build()
    if one[0] != other[0] or one[0] != next(iter(one)):
        yield "the first instance is not the same each time"
    if _play(_first_episode(build), responses) != _play(_first_episode(build), responses):
        yield "the same responses do not make the same episode"


def _observe_changes_nothing(build: Callable[[], Environment], responses: Sequence[str]) -> Iterator[str]:
    episode = _first_episode(build)
    if episode.observe() != episode.observe():
        yield "observe() shows something else the second time"
    if _play(_first_episode(build), responses, looks=0)[1] != _play(_first_episode(build), responses, looks=2)[1]:
        yield "an episode goes another way when observe() is called"


def _ends_for_good(build: Callable[[], Environment], responses: Sequence[str]) -> Iterator[str]:
    """An end comes, result.done says so, and nothing is taken after it."""
    episode = _first_episode(build)
    for response in islice(cycle(responses), MOST_STEPS):
        done = episode.step(response).done
        if done != (episode.ending is not None):
            yield f"a step says done={done} while the ending is {episode.ending}"
        if episode.ending is not None:
            break
    else:
        yield f"an episode goes on after {MOST_STEPS} steps"
        return
    for name, act in (("step()", lambda: episode.step(responses[0])), ("observe()", episode.observe)):
        try:
            act()
        except AssertionError:
            continue
        yield f"{name} after the end is not refused with an AssertionError"


def _reward_at_the_end_only(build: Callable[[], Environment], responses: Sequence[str]) -> Iterator[str]:
    episode = _first_episode(build)
    for response in islice(cycle(responses), MOST_STEPS):
        if episode.ending is not None:
            break
        if episode.reward is not None:
            yield f"a running episode has the reward {episode.reward}"
            return
        episode.step(response)
    reward = episode.reward
    if episode.ending is not None and (not isinstance(reward, float) or not math.isfinite(reward)):
        yield f"an ended episode has the reward {reward}, expected a finite float"


def _facts_are_json(build: Callable[[], Environment], responses: Sequence[str]) -> Iterator[str]:
    """Of a fresh episode and of one that was played."""
    episode = _first_episode(build)
    for _ in range(2):
        facts: dict[str, Mapping[str, Any]] = {"info()": episode.info(), "metrics()": episode.metrics()}
        for name, values in facts.items():
            try:
                same = json.loads(json.dumps(values, allow_nan=False)) == values
            except (TypeError, ValueError):
                same = False
            if not same:
                yield f"{name} holds more than JSON values: {values}"
        if shared := set(facts["info()"]) & set(facts["metrics()"]):
            yield f"info() and metrics() share the names {sorted(shared)}: both go into one row"
        _play(episode, responses)


CHECKS = (_same_episode, _observe_changes_nothing, _ends_for_good, _reward_at_the_end_only, _facts_are_json)
