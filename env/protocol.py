"""What an environment is to the rest of the pipeline.

An episode is a state machine over *stateless* steps: every step is one fresh single-turn call, so an
observation is a complete prompt and never a conversation. One number, the terminal reward, belongs to
the whole episode. Departure from Gymnasium: no reward per step and no hidden chat history.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Ending(StrEnum):
    """How an episode ended. An episode still running has the ending None."""

    ANSWERED = "answered"
    CEILING_EXCEEDED = "ceiling_exceeded"
    BUDGET_EXHAUSTED = "budget_exhausted"


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """One complete prompt, split where it starts to change between the steps of an episode."""

    system: str
    """Rules; the same for every episode of an environment."""
    static: str
    """First part of the user turn; the same for every step of one instance."""
    dynamic: str
    """Rest of the user turn; changes with every step, and nothing follows it."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages, for a tokenizer's chat template."""
        return [
            {"role": "system", "content": self.system},
            {"role": "user", "content": self.static + self.dynamic},
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """What one response did."""

    kind: str | None
    """Name of the action, or None for a response that is no action."""
    ids: tuple[str, ...]
    """The items named, in the order given, each once."""
    ok: bool
    """Whether the action was carried out."""
    error: str | None
    """Why it was not, as a short code of the environment."""
    used: int
    """Tokens held after the step."""
    done: bool
    """Whether the episode has ended."""


class Episode(Protocol):
    """One run of a policy through one instance."""

    instance_id: str
    """The instance this episode is about."""
    ending: Ending | None
    """None while the episode runs."""

    def observe(self) -> Observation:
        """The prompt of the next step. AssertionError after the end."""
        ...

    def step(self, response: str, *, truncated: bool = False) -> StepResult:
        """Carry out a response. `truncated` (the engine hit its token limit) makes it an invalid one."""
        ...

    @property
    def reward(self) -> float | None:
        """The terminal reward of the whole episode; None while it runs."""
        ...

    def info(self) -> Mapping[str, Any]:
        """Facts of the instance for the trajectory record (split, hops, ...); JSON values."""
        ...

    def metrics(self) -> Mapping[str, Any]:
        """Facts of this episode for the trajectory record (correct, answer, counts, ...); JSON values."""
        ...
