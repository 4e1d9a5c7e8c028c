"""When an answer is right, and what an episode is worth: one number, pure functions, and the episodes that have it."""

import re

from env.navigator.instance import Instance
from env.navigator.settings import Rules
from env.protocol import Ending

FAILED = -0.5
"""Over the ceiling, out of steps, or no answer."""
FLOOR = 0.5
"""Least reward of a right answer."""
STEP_COST = 0.05
"""Cost of each multiple of min_steps."""

_DROPPED = bytes(code for code in range(128) if not (chr(code).isdigit() or chr(code).islower()))
_DIGITS = re.compile(r"[0-9]+")


def normal(text: str) -> str:
    """A value as answers are compared: lower case, only [a-z0-9]."""
    return text.lower().encode("ascii", "ignore").translate(None, _DROPPED).decode()


def is_correct(prediction: str, truth: str) -> bool:
    """Equal once normalised; or the only run of digits in the prediction, commas removed, is an all-digit truth.

    A truth with nothing left in it, as of a foreign file in another script, is matched by no answer: else all marks would.
    """
    goal = normal(truth)
    if goal and normal(prediction) == goal:
        return True
    return goal.isdigit() and _DIGITS.findall(prediction.replace(",", "")) == [goal]


def terminal_reward(ending: Ending, *, answer: str | None, truth: str, steps_used: int, min_steps: int, rules: Rules) -> float:
    """The return of an episode that has ended."""
    if ending is not Ending.ANSWERED or answer is None:
        return FAILED
    if is_correct(answer, truth):
        return max(FLOOR, 1 - STEP_COST * steps_used / min_steps)
    return rules.abstain_reward if normal(answer) == "unknown" else 0.0


class Graded:
    """What every episode that is worth its answer says of itself."""

    instance: Instance
    rules: Rules
    ending: Ending | None
    answer: str | None
    steps_used: int

    @property
    def shortest(self) -> int:
        """Fewest steps to a right answer."""
        return self.instance.min_steps

    @property
    def correct(self) -> bool:
        """Whether the answer given is right."""
        return self.answer is not None and is_correct(self.answer, self.instance.answer)

    @property
    def reward(self) -> float | None:
        """The return of the whole episode; None while it runs."""
        if self.ending is None:
            return None
        return terminal_reward(
            self.ending,
            answer=self.answer,
            truth=self.instance.answer,
            steps_used=self.steps_used,
            min_steps=self.shortest,
            rules=self.rules,
        )
