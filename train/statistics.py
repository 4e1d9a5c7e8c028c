"""Intervals and paired tests on episode outcomes.

Shares get Wilson intervals, means a bootstrap that resamples instances: episodes of one instance are alike, and never
count as so many observations. Two policies on the same instances are compared in pairs: an exact McNemar test on
the discordant ones, and a bootstrap interval of the difference that resamples instances.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

RESAMPLES = 10_000


def wilson(successes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share; (0, 1) without observations. An expected number of successes is taken as one observed."""
    if n == 0:
        return 0.0, 1.0
    z, p = NormalDist().inv_cdf((1 + confidence) / 2), successes / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At the ends the exact bound is 0 or 1; the formula misses it by a rounding error.
    return (centre - spread) / scale if successes > 0 else 0.0, (centre + spread) / scale if successes < n else 1.0


def with_interval(value: float, interval: Sequence[float], n: int) -> str:
    """A figure for a terminal: `0.600 [0.544, 0.654] n=300`."""
    low, high = interval
    return f"{value:.3f} [{low:.3f}, {high:.3f}] n={n}"


def bootstrap_mean(values: Sequence[float], *, seed: int = 0, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile interval of a mean, one value per instance."""
    if not values:
        return math.nan, math.nan
    sample = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    means = np.concatenate([generator.choice(sample, (RESAMPLES // 10, len(sample))).mean(axis=1) for _ in range(10)])
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def clustered_share(values: Sequence[bool], clusters: Sequence[str]) -> tuple[float, float]:
    """Wilson interval of a share of episodes.

    Where an instance was played more than once the number of instances stands for that of episodes, as if those of one
    instance all said the same: wide rather than narrow.
    """
    n = len(set(clusters))
    return wilson(n * sum(values) / max(1, len(values)), n)


def clustered_means(
    columns_F: Sequence[Sequence[float | None]], clusters: Sequence[str], *, seed: int = 0, confidence: float = 0.95
) -> list[tuple[float, float]]:
    """Percentile intervals of the mean of each column over episodes, None left out; whole clusters are resampled."""
    place = {cluster: at for at, cluster in enumerate(dict.fromkeys(clusters))}
    sums_CF = np.zeros((len(place), len(columns_F)))
    counts_CF = np.zeros_like(sums_CF)
    for f, column in enumerate(columns_F):
        for cluster, value in zip(clusters, column, strict=True):
            if value is not None:
                sums_CF[place[cluster], f] += value
                counts_CF[place[cluster], f] += 1
    generator = np.random.default_rng(seed)
    means_RF = []
    for _ in range(10):
        # How often each cluster is drawn: the same resamples for every column.
        drawn_RC = generator.multinomial(len(place), [1 / len(place)] * len(place), size=RESAMPLES // 10).astype(float)
        with np.errstate(invalid="ignore"):
            means_RF.append((drawn_RC @ sums_CF) / (drawn_RC @ counts_CF))
    # A resample without one value of a column has no mean of it.
    low_F, high_F = np.nanquantile(np.concatenate(means_RF), [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return [(float(low), float(high)) for low, high in zip(low_F, high_F, strict=True)]


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided exact p-value of `gained` against `lost` discordant pairs: a sign test with p = 1/2."""
    n = gained + lost
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1)) / 2**n
    return min(1.0, 2 * tail)


@dataclass(frozen=True, kw_only=True, slots=True)
class Paired:
    """Policy A against policy B on the same instances."""

    n: int
    difference: float
    """Mean of A - B."""
    interval: tuple[float, float]
    """95%, bootstrap over instances."""
    gained: int
    """Right in A, wrong in B."""
    lost: int
    p_value: float
    """Exact McNemar."""


def paired(a: Sequence[bool], b: Sequence[bool], *, seed: int = 0) -> Paired:
    """Compare outcomes of the same instances in the same order."""
    assert len(a) == len(b)
    gaps = [int(x) - int(y) for x, y in zip(a, b, strict=True)]
    gained, lost = gaps.count(1), gaps.count(-1)
    return Paired(
        n=len(gaps),
        difference=sum(gaps) / len(gaps),
        interval=bootstrap_mean(gaps, seed=seed),
        gained=gained,
        lost=lost,
        p_value=mcnemar(gained, lost),
    )
