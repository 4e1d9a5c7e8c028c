"""Plays the oracle and writes its steps as SFT rows; what the filter refuses is counted by reason."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from env.files import atomic_write
from env.navigator.episode import NavigatorEpisode
from env.navigator.generate import report_path
from env.navigator.instance import Instance, read_instances, write_rows
from env.navigator.policies import Oracle
from env.navigator.teacher import MOST_STEPS, TaughtStep, leak, rows
from rollout.seeds import derive


def play_teacher(instance: Instance, *, style: str, noise: float, seed: int) -> tuple[NavigatorEpisode, list[TaughtStep]]:
    """The oracle's whole episode and what each step saw."""
    episode = NavigatorEpisode(instance)
    oracle = Oracle(seed, noise=noise, style=style)
    steps = []
    while episode.ending is None:
        observation, held = episode.observe(), tuple(item.text for item in episode.held.values())
        response = oracle(episode)
        result = episode.step(response)
        read = int(result.ids[0]) if result.kind == "READ" and result.ok else None
        steps.append(TaughtStep(observation=observation, response=response, held=held, read=read))
    return episode, steps


def refusal(episode: NavigatorEpisode, steps: list[TaughtStep]) -> str | None:
    """Why a trajectory is not taught: wrong, long, leak; None when it is."""
    if not episode.metrics()["correct"]:
        return "wrong"
    if len(steps) > MOST_STEPS * episode.instance.min_steps:
        return "long"
    return "leak" if leak(episode.instance, steps) else None


def write_teacher_rows(
    instances: Path,
    out: Path,
    *,
    style: str,
    noise: float,
    seed: int,
    n: int | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> dict[str, Any]:
    """Write the rows of the first `n` instances of a file (None: all) and OUT.report.json beside them; returns the report."""
    refused: Counter[str] = Counter()
    kept = 0

    def taught() -> Iterator[dict[str, Any]]:
        nonlocal kept
        for number, instance in enumerate(read_instances(instances)):
            if n is not None and number >= n:
                return
            episode, steps = play_teacher(instance, style=style, noise=noise, seed=derive(seed, "teacher", instance.id))
            reason = refusal(episode, steps)
            progress(1)
            if reason is not None:
                refused[reason] += 1
                continue
            kept += 1
            yield from rows(instance, steps)

    written = write_rows(out, taught())
    played = kept + sum(refused.values())
    report = {"style": style, "noise": noise, "played": played, "kept": kept, "refused": dict(refused), "rows": written}
    with atomic_write(report_path(out)) as stream:
        stream.write(json.dumps(report, indent=2) + "\n")
    return report
