"""Advantages: one number for each episode of a group, inherited by every step of the episode.

The baseline runs over episodes, never over steps: splitting an episode into more steps changes nothing.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, pstdev

_EPSILON = 1e-6


def episode(returns_G: Sequence[float]) -> list[float]:
    """(R - mean) / std over the group's episodes; the std is that of the population."""
    mean, spread = fmean(returns_G), pstdev(returns_G)
    return [(r - mean) / (spread + _EPSILON) for r in returns_G]


def episode_no_std(returns_G: Sequence[float]) -> list[float]:
    """R - mean: groups keep their scale, easy and hard ones are not blown up (Dr. GRPO)."""
    mean = fmean(returns_G)
    return [r - mean for r in returns_G]


def rloo(returns_G: Sequence[float]) -> list[float]:
    """R minus the mean of the other episodes (leave one out)."""
    total, others = sum(returns_G), len(returns_G) - 1
    return [r - (total - r) / others for r in returns_G]


ADVANTAGES: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "episode": episode,
    "episode_no_std": episode_no_std,
    "rloo": rloo,
}


def has_spread(returns_G: Sequence[float]) -> bool:
    """Whether a group teaches anything: equal returns give every episode the advantage 0."""
    return max(returns_G) - min(returns_G) > 1e-9
