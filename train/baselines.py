"""`navigator baselines`: what is answered without navigating, and the gate that it must pass.

An environment asks for navigation only if nothing is known before the first read and one chunk is not enough. Each
reader is measured against itself: a model that cannot answer with the full document in view says nothing about the single
chunk, and a document that does not fit the model is never cut.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from env import make
from env.files import atomic_write
from env.navigator.baselines import MAX_TOKENS, MECHANICAL, Given, OneStep, Style
from env.navigator.instance import Instance, write_rows
from rollout.engine import Sampling
from rollout.records import Trajectory, to_row
from rollout.scheduler import EpisodeTask
from rollout.seeds import derive
from train import manifest
from train.config import Config, file_digest, plain
from train.engines import Runner, open_engine
from train.evaluate import load_instances
from train.progress import Progress
from train.statistics import wilson, with_interval

VERSION = 1
MARGIN = 0.1
"""The single chunk must be at least this far below the full document."""


def run_baselines(
    config: Config, *, instances: Sequence[Path], out: Path, model: str | None = None, n: int | None = None, runner: Runner | None = None
) -> dict[str, Any]:
    """Measure every baseline on the first `n` instances of each file and write `out/baselines.json`; returns what it holds.

    Replies of `model` are kept beside it, one file a baseline. `runner` may bring an engine that serves that model.
    """
    inputs = {
        "model": model,
        "n": n,
        "instances": [file_digest(path) for path in instances],
        "temperature": config.evaluate.temperature,
        "engine": plain(config.engine),
        "seed": config.seed,
    }
    with manifest.stage(out, "baselines.manifest", inputs) as facts:
        loaded = load_instances(make("navigator"), instances, n)
        by_split: dict[str, list[Instance]] = {}
        for instance in loaded:
            by_split.setdefault(instance.split, []).append(instance)
        splits = {split: {"mechanical": _mechanical(own)} for split, own in by_split.items()}
        if model is not None and runner is not None:
            _play_all(config, runner, by_split, splits, out)
        elif model is not None:
            with open_engine(model, config) as opened:
                _play_all(config, opened, by_split, splits, out)
        results = {"version": VERSION, "model": model, "splits": splits}
        with atomic_write(out / "baselines.json") as stream:
            stream.write(json.dumps(results, indent=2) + "\n")
        facts["instances"] = len(loaded)
    return results


def _mechanical(instances: Sequence[Instance]) -> dict[str, Any]:
    """The mean probability of a right answer, over the instances that a reader can be had for."""
    found = {}
    for name, reader in MECHANICAL.items():
        scores = [score for instance in instances if (score := reader(instance)) is not None]
        total = sum(scores)
        found[name] = {"n": len(scores), "accuracy": total / len(scores) if scores else None, "interval": list(wilson(total, len(scores)))}
    return found


def _play_all(config: Config, runner: Runner, by_split: Mapping[str, Sequence[Instance]], splits: dict[str, Any], out: Path) -> None:
    """Every baseline of a model, split by split."""
    total = sum(map(len, by_split.values())) * len(Style) * len(Given)
    with Progress("baselines", total=total, unit="episode") as progress:
        for split, instances in by_split.items():
            for style in Style:
                splits[split][style.value] = {}
                for given in Given:
                    numbers, rows = _play(config, runner, instances, given, style, progress)
                    splits[split][style.value][given.value] = numbers
                    if rows:
                        write_rows(out / f"{split}.{given}.{style}.jsonl", rows)


def _play(
    config: Config, runner: Runner, instances: Sequence[Instance], given: Given, style: Style, progress: Progress
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Numbers and replies of one baseline; none where the longest prompt does not fit."""
    usable = [instance for instance in instances if instance.evidence or given is not Given.CHUNK]
    limit, bound = config.engine.max_model_len, MAX_TOKENS[style]
    tokens = max((len(runner.engine.encode(OneStep(instance, given, style).observe())) for instance in usable), default=0)
    if tokens + bound > limit:
        progress(len(instances))
        return {"n": 0, "accuracy": None, "does_not_fit": {"prompt_tokens": tokens, "max_tokens": bound, "max_model_len": limit}}, []
    trajectories, _ = runner.run(
        [EpisodeTask(instance_id=i.id, episode=0, make=lambda i=i: OneStep(i, given, style)) for i in usable],
        sampling=Sampling(max_tokens=bound, temperature=config.evaluate.temperature),
        seed=derive(config.seed, "baselines", given, style),
        on_finished=lambda trajectory: progress(1),
    )
    return _numbers(trajectories), [to_row(trajectory) for trajectory in trajectories]


def _numbers(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """An episode that the engine failed counts as wrong."""
    n = len(trajectories)
    right = sum(trajectory.metrics["correct"] and trajectory.error is None for trajectory in trajectories)
    return {
        "n": n,
        "accuracy": right / n if n else None,
        "interval": list(wilson(right, n)),
        "answered": sum(trajectory.ending == "answered" for trajectory in trajectories),
        "failures": sum(trajectory.error is not None for trajectory in trajectories),
    }


def gate(results: Mapping[str, Any]) -> list[str]:
    """Why the environment may not be called valid, split by split; empty when it may.

    A reader that cannot judge complains of nothing (see `undecided`); when none can, that is a complaint.
    """
    complaints = []
    for split, readers in results["splits"].items():
        chance = _chance(readers)
        for reader, found in readers.items():
            no_read, single, full = (found[given.value] for given in (Given.NOTHING, Given.CHUNK, Given.DOCUMENT))
            if no_read["n"] and no_read["interval"][0] > chance:
                complaints.append(
                    f"{split}, {reader}: no-read {_cell(no_read)} is above chance {chance:.3f}: the answer shows before any read"
                )
            if _cannot_judge(found, chance) is None and _is_near(single, full):
                complaints.append(
                    f"{split}, {reader}: single-chunk {_cell(single)} is not clearly below full-document {_cell(full)}: "
                    f"one chunk gives the answer away, or there are too few instances to tell"
                )
        reasons = [f"{reader}: {_cannot_judge(found, chance)}" for reader, found in readers.items()]
        if all(_cannot_judge(found, chance) for found in readers.values()):
            complaints.append(f"{split}: nobody can judge single-chunk against full-document ({'; '.join(reasons)})")
    return complaints


def undecided(results: Mapping[str, Any]) -> list[str]:
    """By which readers the gate cannot judge whether one chunk is enough, and why."""
    return [
        f"{split}, {reader}: cannot judge single-chunk by this reader: {reason}"
        for split, readers in results["splits"].items()
        for reader, found in readers.items()
        if (reason := _cannot_judge(found, _chance(readers))) is not None
    ]


def _chance(readers: Mapping[str, Any]) -> float:
    return float(readers["mechanical"]["chance"]["accuracy"])


def _cannot_judge(found: Mapping[str, Any], chance: float) -> str | None:
    """Why a reader's single-chunk cannot be held against its full-document."""
    for name in (Given.DOCUMENT.value, Given.CHUNK.value):
        if "does_not_fit" in found[name]:
            return f"{name} {_cell(found[name])}"
        if not found[name]["n"]:
            return f"{name} is in a grammar of another system"
    full = found[Given.DOCUMENT.value]
    return None if full["interval"][0] > chance else f"full-document {_cell(full)} is itself at the floor, chance {chance:.3f}"


def _is_near(single: Mapping[str, Any], full: Mapping[str, Any]) -> bool:
    return single["interval"][1] >= full["interval"][0] or full["accuracy"] - single["accuracy"] < MARGIN


def table(results: Mapping[str, Any]) -> str:
    """Baselines by split with 95% intervals, for a terminal."""
    splits = results["splits"]
    lines = [f"{'baseline':28}" + "".join(f"{split:>42}" for split in splits)]
    for reader, name in _rows(splits):
        lines.append(f"{reader + ' ' + name:28}" + "".join(f"{_cell(readers[reader][name]):>42}" for readers in splits.values()))
    return "\n".join(lines)


def _rows(splits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every split has the same baselines."""
    return ((reader, name) for reader, found in next(iter(splits.values())).items() for name in found)


def _cell(numbers: Mapping[str, Any]) -> str:
    if fit := numbers.get("does_not_fit"):
        return f"does not fit: {fit['prompt_tokens']}+{fit['max_tokens']} > {fit['max_model_len']} tokens"
    if not numbers["n"]:
        return "-"
    return with_interval(numbers["accuracy"], numbers["interval"], numbers["n"])
