"""Held-out evaluation of one policy: trajectories.jsonl and summary.json.

Everything is counted per EPISODE: a mean over step records would weigh long episodes more. An episode that
failed by an error of the engine counts as wrong and is counted apart. Finished episodes are kept while the
rest is running, and a stopped evaluation goes on from them, unless weights, instances or settings have changed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from env import make
from env.errors import InputError
from env.files import atomic_write
from env.navigator.instance import dump_row, write_rows
from env.navigator.policies import POLICIES
from env.registry import Environment
from rollout.engine import Adapter, Sampling
from rollout.records import Trajectory, to_row
from rollout.scheduler import EpisodeTask, play
from rollout.seeds import derive
from train.config import Config, digest, file_digest, plain, stamp
from train.engines import Runner, open_engine
from train.progress import Progress
from train.statistics import bootstrap_mean, wilson

VERSION = 1
_ENDINGS = ("answered", "ceiling_exceeded", "budget_exhausted")


def run_evaluation(
    config: Config,
    *,
    policy: str,
    adapter: Path | None,
    instances: Sequence[Path],
    out: Path,
    runner: Runner | None = None,
    n: int | None = None,
) -> dict[str, Any]:
    """Play every instance of the files once (the first `n` of each) and write `out`; returns the summary.

    `policy` is a reference policy or a model; `runner` may bring an engine that serves that model.
    """
    environment = make("navigator")
    loaded = load_instances(environment, instances, n or config.evaluate.n)
    key = partial_key(config, policy=policy, adapter=adapter, instances=instances)
    out.mkdir(parents=True, exist_ok=True)
    with _Partial(out / "partial.jsonl", key) as done, ExitStack() as stack:
        todo = [instance for instance in loaded if instance.id not in done.rows]
        progress = stack.enter_context(Progress(f"evaluate {out.name}", total=len(todo), unit="episode"))

        def keep(trajectory: Trajectory) -> None:
            done.add(to_row(trajectory))
            progress(1)

        if policy in POLICIES:
            for instance in todo:
                seed = derive(config.seed, policy, instance.id)
                keep(play(environment.episode(instance), POLICIES[policy](seed), seed))
        elif todo:
            runner = runner or stack.enter_context(open_engine(policy, config))
            runner.run(
                [EpisodeTask(instance_id=i.id, episode=0, make=lambda i=i: environment.episode(i)) for i in todo],
                sampling=Sampling(max_tokens=config.evaluate.max_tokens, temperature=config.evaluate.temperature),
                seed=derive(config.seed, "evaluate"),
                adapter=None if adapter is None else Adapter(version=0, path=adapter.resolve()),
                on_finished=keep,
            )
        rows = [done.rows[instance.id] for instance in loaded]
    write_rows(out / "trajectories.jsonl", rows)
    summary = {"version": VERSION, "policy": policy, "adapter": str(adapter) if adapter else None, "splits": summarize(rows)}
    with atomic_write(out / "summary.json") as stream:
        stream.write(json.dumps(summary, indent=2) + "\n")
    (out / "partial.jsonl").unlink()
    return summary


def load_instances(environment: Environment, paths: Sequence[Path], n: int | None) -> list[Any]:
    """The first `n` instances of each file (None: all). InputError when there is none, or one comes twice."""
    names = ", ".join(map(str, paths))
    loaded = [instance for path in paths for instance in islice(environment.read(path), n)]
    if not loaded:
        raise InputError(f"{names}: no instance to evaluate on")
    seen: set[str] = set()
    for instance in loaded:
        if instance.id in seen:
            raise InputError(f"{names}: instance {instance.id} comes twice; an episode may count once")
        seen.add(instance.id)
    return loaded


def partial_key(config: Config, *, policy: str, adapter: Path | None, instances: Sequence[Path]) -> str:
    """What a finished episode depends on.

    A retrained model has the path of the old one, so the files count too: instances by content, weights by size
    and time, because reading a large model takes longer than the check saves.
    """
    return digest(
        {
            "policy": [policy, None if policy in POLICIES else stamp(Path(policy))],
            "adapter": adapter and [str(adapter), stamp(adapter)],
            "instances": [file_digest(path) for path in instances],
            "evaluate": plain(config.evaluate),
            "seed": config.seed,
        }
    )


class _Partial:
    """Rows of a running evaluation; those that were made under another key are thrown away."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.rows: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> "_Partial":
        lines = self.path.read_text(encoding="utf-8").split("\n") if self.path.exists() else []
        if lines and lines[0] == self.key:
            # The last piece is empty, or half a line of a run that was killed.
            self.rows = {row["instance_id"]: row for row in map(json.loads, lines[1:-1])}
        self.stream = self.path.open("w", encoding="utf-8")
        self.stream.write(self.key + "\n")
        for row in self.rows.values():
            self.stream.write(dump_row(row))
        self.stream.flush()
        return self

    def add(self, row: dict[str, Any]) -> None:
        """Keep one finished episode."""
        self.rows[row["instance_id"]] = row
        self.stream.write(dump_row(row))
        self.stream.flush()

    def __exit__(self, *error: object) -> None:
        self.stream.close()


def summarize(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """split -> numbers over its episodes, and the same by hops."""
    by_split: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_split.setdefault(row["split"], []).append(row)
    found = {}
    for split, own in by_split.items():
        hops = sorted({row["n_hops"] for row in own})
        found[split] = _numbers(own) | {"by_hops": {str(k): _numbers([row for row in own if row["n_hops"] == k]) for k in hops}}
    return found


def _numbers(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    n, right = len(rows), sum(row["correct"] and row["failure"] is None for row in rows)
    rewards = [row["reward"] for row in rows]
    kept = [row["fact_retention"] for row in rows if row["fact_retention"] is not None]
    steps = sum(row["steps_used"] for row in rows)
    return {
        "n": n,
        "accuracy": right / n,
        "interval": list(wilson(right, n)),
        "reward": fmean(rewards),
        "reward_interval": list(bootstrap_mean(rewards)),
        "endings": {name: sum(row["ending"] == name for row in rows) / n for name in _ENDINGS},
        "failures": sum(row["failure"] is not None for row in rows),
        "steps_used": steps / n,
        "steps_over_min": fmean(row["steps_over_min"] for row in rows),
        "compress_use": sum(row["n_compress"] > 0 for row in rows) / n,
        "invalid_share": sum(row["n_invalid"] for row in rows) / max(1, steps),
        "fact_retention": fmean(kept) if kept else None,
        "distractor_capture": sum(row["distractor_capture"] is not None for row in rows) / n,
    }
