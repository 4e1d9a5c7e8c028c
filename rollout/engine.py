"""The boundary between episodes and whatever produces tokens.

Token ids go in, token ids and the log-probabilities of the sampled tokens come out; no text crosses
between an engine and the loss. `encode` and `decode` belong to the engine because they belong to its
model's tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from env.protocol import Observation


class FinishReason(StrEnum):
    """Why the engine stopped sampling."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How tokens are drawn."""

    max_tokens: int
    """Upper bound on the tokens of one completion."""
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """Below 1 only in evaluation: the log-probabilities would be of another distribution."""
    top_k: int = 0
    """0 is off; above 0 only in evaluation."""

    @property
    def trainable(self) -> bool:
        """Whether the sampled log-probabilities are those of the policy itself."""
        return self.temperature == 1.0 and self.top_p == 1.0 and self.top_k == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Adapter:
    """One version of a LoRA adapter on disk. A new version has a new path: engines cache by path."""

    version: int
    """Recorded with every step that it sampled: the optimiser steps taken, 0 for an adapter that is not in training."""
    path: Path
    """Folder in PEFT's format."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One completion to make."""

    request_id: str
    """Unique while in flight."""
    prompt_ids: Sequence[int]
    """The whole prompt."""
    sampling: Sampling
    seed: int
    """Unique per request and derived from the run's seed, so that a batch can be repeated."""
    priority: int = 0
    """Lower is served first."""
    adapter: Adapter | None = None
    """None: the bare model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What was sampled."""

    token_ids: Sequence[int]
    """Including the end-of-turn token when finish_reason is STOP."""
    logprobs: Sequence[float]
    """Of each sampled token, same length as token_ids."""
    finish_reason: FinishReason
    cached_tokens: int = 0
    """Prompt tokens that the engine's prefix cache served."""


class Engine(Protocol):
    """Something that completes prompts; implementations live in rollout/engines/."""

    gives_ids: bool
    """Whether token ids and log-probabilities are the engine's own; training needs them."""

    def encode(self, observation: Observation) -> list[int]:
        """Prompt ids of an observation, the generation prompt included."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of completion ids, special tokens left out."""
        ...

    async def generate(self, request: Request) -> Completion:
        """Complete one request; many may wait at once. EngineDied when the engine is gone."""
        ...

    async def close(self) -> None:
        """Free the engine; calling it twice is fine."""
        ...
