"""What a rollout leaves behind: steps, trajectories, groups; JSON lines with a version.

Token ids and log-probabilities are what the engine sampled, untouched; the loss is computed on them. A row is
flat, so that a table of rows needs no unpacking; `info_keys` and `metric_keys` say how to read it back.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.navigator.instance import read_rows
from env.protocol import Ending, StepResult
from rollout.engine import FinishReason

VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One stateless call and what it did."""

    response: str
    """Decoded completion, as the environment parsed it."""
    result: StepResult
    prompt_ids: Sequence[int] = ()
    """The whole prompt; empty when no engine was used (reference policies)."""
    completion_ids: Sequence[int] = ()
    """Sampled ids."""
    logprobs: Sequence[float] = ()
    """The engine's log-probability of each sampled id."""
    finish_reason: FinishReason = FinishReason.STOP
    version: int = 0
    """Adapter version that sampled it; 0 is the bare model."""
    cached_tokens: int = 0
    """Prompt tokens served by the engine's prefix cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """One finished episode."""

    instance_id: str
    seed: int
    """The episode's own seed; requests derive theirs from it."""
    reward: float
    """Terminal return of the whole episode."""
    ending: str | None
    """An Ending, or None when the episode failed (see error)."""
    steps: tuple[Step, ...]
    info: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the instance (split, n_hops, min_steps, ...)."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the episode (correct, answer, steps_used, ...)."""
    error: str | None = None
    """Why the episode failed as data; such a trajectory is recorded and never trained on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The episodes of one instance that share one baseline."""

    instance_id: str
    trajectories: tuple[Trajectory, ...]


def to_row(trajectory: Trajectory, *, tokens: bool = False) -> dict[str, Any]:
    """A JSON row of one trajectory; `tokens` adds ids and log-probabilities."""
    steps = []
    for step in trajectory.steps:
        entry: dict[str, Any] = {
            "response": step.response,
            "kind": step.result.kind,
            "ids": list(step.result.ids),
            "ok": step.result.ok,
            "error": step.result.error,
            "used": step.result.used,
            "done": step.result.done,
            "finish_reason": step.finish_reason.value,
            "version": step.version,
            "prompt_tokens": len(step.prompt_ids),
            "completion_tokens": len(step.completion_ids),
            "cached_tokens": step.cached_tokens,
        }
        if tokens:
            entry |= {
                "prompt_ids": list(step.prompt_ids),
                "completion_ids": list(step.completion_ids),
                "logprobs": list(step.logprobs),
            }
        steps.append(entry)
    row = {
        "format": VERSION,
        "instance_id": trajectory.instance_id,
        "seed": trajectory.seed,
        **trajectory.info,
        "reward": trajectory.reward,
        "ending": trajectory.ending,
        **trajectory.metrics,
        "failure": trajectory.error,
        "info_keys": list(trajectory.info),
        "metric_keys": list(trajectory.metrics),
        "steps": steps,
    }
    assert len(row) == 9 + len(trajectory.info) + len(trajectory.metrics), "a fact of the environment has the name of another field"
    return row


def from_row(row: Any, where: str = "row") -> Trajectory:
    """A trajectory from a parsed row; one written without tokens has empty ids. InputError naming the field."""
    version = _get(row, "format", int, where)
    if version != VERSION:
        raise InputError(f"{where}: field 'format' is {version}, this program reads {VERSION}; write the file again")
    facts = {kind: {name: _get(row, name, object, where) for name in _get(row, kind, list, where)} for kind in ("info_keys", "metric_keys")}
    return Trajectory(
        instance_id=_get(row, "instance_id", str, where),
        seed=_get(row, "seed", int, where),
        reward=float(_get(row, "reward", (int, float), where)),
        ending=_choice(row, "ending", (None, *Ending), where),
        steps=tuple(_step(step, f"{where}: steps[{n}]") for n, step in enumerate(_get(row, "steps", list, where))),
        info=facts["info_keys"],
        metrics=facts["metric_keys"],
        error=_get(row, "failure", (str, type(None)), where),
    )


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """Stream the trajectories of a file (.gz and .zst by suffix). InputError with file, line and field."""
    for where, row in read_rows(path):
        yield from_row(row, where)


def _step(row: Any, where: str) -> Step:
    response, tokens = _get(row, "response", str, where), {}
    if "completion_ids" in row:
        tokens = {name: _get(row, name, list, where) for name in ("prompt_ids", "completion_ids", "logprobs")}
        ids, logprobs = len(tokens["completion_ids"]), len(tokens["logprobs"])
        if ids != logprobs:
            raise InputError(f"{where}: {ids} completion_ids but {logprobs} logprobs, expected one for each id")
    return Step(
        response=response,
        result=StepResult(
            kind=_get(row, "kind", (str, type(None)), where),
            ids=tuple(_get(row, "ids", list, where)),
            ok=_get(row, "ok", bool, where),
            error=_get(row, "error", (str, type(None)), where),
            used=_get(row, "used", int, where),
            done=_get(row, "done", bool, where),
        ),
        finish_reason=FinishReason(_choice(row, "finish_reason", tuple(FinishReason), where)),
        version=_get(row, "version", int, where),
        cached_tokens=_get(row, "cached_tokens", int, where),
        **tokens,
    )


def _get(row: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """A field of a JSON object, of the given type or types."""
    if not isinstance(row, dict):
        raise InputError(f"{where} is {json.dumps(row)[:60]}, expected an object")
    if name not in row:
        raise InputError(f"{where}: field {name!r} is missing")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    value = row[name]
    # A bool is an int to Python, not to us.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds and object not in kinds):
        expected = " or ".join("null" if k is type(None) else k.__name__ for k in kinds)
        raise InputError(f"{where}: field {name!r} is {json.dumps(value)[:60]}, expected {expected}")
    return value


def _choice(row: Any, name: str, choices: Sequence[str | None], where: str) -> Any:
    """A field that is one of a few values."""
    value = _get(row, name, (str, type(None)), where)
    if value not in choices:
        expected = ", ".join(json.dumps(choice) for choice in choices)
        raise InputError(f"{where}: field {name!r} is {json.dumps(value)}, expected one of {expected}")
    return value
