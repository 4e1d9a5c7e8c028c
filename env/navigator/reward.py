"""When an answer is right, and what an episode is worth: one number, pure functions."""

import re

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
