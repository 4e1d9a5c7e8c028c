"""Looks for confounds: can evidence chunks be told from the others without reading?

For every feature a rank AUC (ties count half), compared within each instance and averaged: of evidence
among all register chunks, and of the answer chunk among the chunks of its own section. A logistic regression
over the first four features, cross-validated by instance, looks for what they tell together. 0.5 is nothing.
Means are kept running, and the regression sees the first instances only: memory does not grow with a split.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from env.navigator.instance import Instance
from env.navigator.tokens import overlap, words_of

TOLERANCE = 0.06
"""Largest |AUC - 0.5| that passes."""
SMALL = 300
"""In smaller files it is four standard errors, if these are more."""
FEWEST = 30
"""With fewer instances nothing can be told, and nothing fails."""
MOST_MODELLED = 2000
"""Instances that the regression sees."""
FEATURES = ("position", "position_in_section", "tokens", "entries", "overlap")
COMPARISONS = ("evidence_among_registers", "answer_in_section")
_MODELLED = 4
_FOLDS = 5

Row = tuple[float, ...]
Group = list[tuple[bool, Row]]
"""(is positive, features) of the chunks that are compared in one instance."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One comparison in one instance."""

    group: Group
    aucs: tuple[float | None, ...]
    """By feature; None where there is nothing to compare with."""


@dataclass(slots=True)
class Mean:
    """A running mean with its standard error."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float | None) -> None:
        """Count a value; None is none."""
        if value is not None:
            self.n, self.total, self.squares = self.n + 1, self.total + value, self.squares + value * value

    def result(self) -> tuple[float, float]:
        """(mean, standard error); (0.5, infinite) of too few."""
        if self.n < FEWEST:
            return 0.5, math.inf
        mean = self.total / self.n
        variance = max(0.0, self.squares - self.n * mean * mean) / (self.n - 1)
        return mean, math.sqrt(variance / self.n)


def _rows(instance: Instance) -> list[tuple[int, str, Row]]:
    """(chunk, section, features) of every register chunk."""
    words = words_of(instance.question)
    sections: dict[str, list[int]] = {}
    for chunk in instance.chunks:
        sections.setdefault(chunk.section, []).append(chunk.idx)
    rows: list[tuple[int, str, Row]] = []
    for chunk in instance.chunks:
        if chunk.kind == "register":
            own = sections[chunk.section]
            inside = own.index(chunk.idx) / max(1, len(own) - 1)
            place = chunk.idx / max(1, len(instance.chunks) - 1)
            features = (place, inside, float(chunk.tokens), float(len(chunk.entity_names)), float(overlap(words, chunk.text)))
            rows.append((chunk.idx, chunk.section, features))
    return rows


def measure(instance: Instance) -> tuple[Measured, ...]:
    """Both comparisons in one instance; empty without evidence."""
    if not instance.evidence:
        return ()
    wanted = {e.chunk_idx for e in instance.evidence}
    answer = instance.evidence[-1].chunk_idx
    rows = _rows(instance)
    own = next((section for idx, section, _ in rows if idx == answer), None)
    groups = ([(idx in wanted, row) for idx, _, row in rows], [(idx == answer, row) for idx, section, row in rows if section == own])
    return tuple(Measured(group, tuple(auc([(label, row[f]) for label, row in group]) for f in range(len(FEATURES)))) for group in groups)


def auc(group: Sequence[tuple[bool, float]]) -> float | None:
    """The chance that a positive outranks a negative of its group; None without both."""
    positive = [score for label, score in group if label]
    negative = [score for label, score in group if not label]
    if not positive or not negative:
        return None
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / (len(positive) * len(negative))


def _fit(rows_NF: Any, labels_N: Any, steps: int = 6) -> Any:
    """Weights of a logistic regression, by Newton's method with a small ridge."""
    import numpy as np

    weights = np.zeros(rows_NF.shape[1])
    for _ in range(steps):
        p_N = 1 / (1 + np.exp(-rows_NF @ weights))
        gradient = rows_NF.T @ (labels_N - p_N) - 1e-3 * weights
        hessian = (rows_NF.T * (p_N * (1 - p_N))) @ rows_NF + 1e-3 * np.eye(len(weights))
        weights = weights + np.linalg.solve(hessian, gradient)
    return weights


def _model_auc(groups: Sequence[Group]) -> tuple[float, float]:
    """Cross-validated AUC of the logistic regression over the first four features."""
    import numpy as np

    fold_N = np.array([i % _FOLDS for i, group in enumerate(groups) for _ in group])
    labels_N = np.array([label for group in groups for label, _ in group], dtype=float)
    rows_NF = np.array([row[:_MODELLED] for group in groups for _, row in group])
    spread_F = rows_NF.std(axis=0)
    rows_NF = (rows_NF - rows_NF.mean(axis=0)) / np.where(spread_F > 0, spread_F, 1.0)
    rows_NF = np.hstack([np.ones((len(rows_NF), 1)), rows_NF])
    scores_N = np.empty(len(rows_NF))
    for fold in range(_FOLDS):
        weights = _fit(rows_NF[fold_N != fold], labels_N[fold_N != fold])
        scores_N[fold_N == fold] = rows_NF[fold_N == fold] @ weights
    mean, scores = Mean(), iter(scores_N.tolist())
    for group in groups:
        mean.add(auc([(label, next(scores)) for label, _ in group]))
    return mean.result()


@dataclass(slots=True)
class _Comparison:
    """What is kept of one comparison."""

    means: list[Mean] = field(default_factory=lambda: [Mean() for _ in FEATURES])
    groups: list[Group] = field(default_factory=list)


class Audit:
    """Collects instances one at a time; keeps numbers, not documents."""

    def __init__(self) -> None:
        self.instances = 0
        self._comparisons = [_Comparison() for _ in COMPARISONS]

    def add(self, instance: Instance) -> None:
        """Count one instance."""
        self.count(measure(instance))

    def count(self, measured: Iterable[Measured]) -> None:
        """Count one instance that was measured elsewhere."""
        for comparison, one in zip(self._comparisons, measured, strict=False):
            for mean, value in zip(comparison.means, one.aucs, strict=True):
                mean.add(value)
            if len(comparison.groups) < MOST_MODELLED:
                comparison.groups.append(one.group)
        self.instances += 1

    def report(self) -> dict[str, Any]:
        """AUC of every feature of both comparisons, and whether all gated ones pass."""
        found: dict[str, Any] = {"instances": self.instances, "tolerance": TOLERANCE}
        passed = True
        for name, comparison in zip(COMPARISONS, self._comparisons, strict=True):
            measured: dict[str, Any] = {}
            for feature, mean in zip(FEATURES, comparison.means, strict=True):
                gated = feature != "overlap" or name == "answer_in_section"
                measured[feature] = self._judged(*mean.result(), gated)
            if len(comparison.groups) >= FEWEST:
                measured["logistic"] = self._judged(*_model_auc(comparison.groups), True)
            passed &= all(item["passed"] for item in measured.values())
            found[name] = measured
        return found | {"passed": passed}

    def _judged(self, value: float, error: float, gated: bool) -> dict[str, Any]:
        limit = max(TOLERANCE, 4 * error) if self.instances < SMALL else TOLERANCE
        return {
            "auc": round(value, 4),
            "standard_error": None if math.isinf(error) else round(error, 4),
            "gated": gated,
            "passed": not gated or abs(value - 0.5) <= limit,
        }
