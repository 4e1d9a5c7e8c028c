"""What a rollout leaves behind: steps, trajectories, groups; JSON lines with a version.

Token ids and log-probabilities are what the engine sampled, untouched; the loss is computed on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from env.protocol import StepResult
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
        row: dict[str, Any] = {
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
            row |= {
                "prompt_ids": list(step.prompt_ids),
                "completion_ids": list(step.completion_ids),
                "logprobs": list(step.logprobs),
            }
        steps.append(row)
    return {
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
