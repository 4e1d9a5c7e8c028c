"""Looks for confounds: can evidence chunks be told from the others without reading?

For every feature a rank AUC (ties count half), compared within each instance and averaged: of evidence
among all register chunks, and of the answer chunk among the chunks of its own section. A logistic regression
over the first four features, cross-validated by instance, looks for what they tell together. 0.5 is nothing.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from env.navigator.instance import Instance

TOLERANCE = 0.06
"""Largest |AUC - 0.5| that passes; more when three standard errors are more, in small files."""
FEWEST = 30
"""With fewer instances nothing can be told, and nothing fails."""
FEATURES = ("position", "position_in_section", "tokens", "entries", "overlap")
_MODELLED = 4
_FOLDS = 5
_WORD = re.compile(r"\w+")

Row = tuple[float, ...]


@dataclass(slots=True)
class Table:
    """Feature rows of one comparison, one list of (is positive, row) for each instance."""

    groups: list[list[tuple[bool, Row]]] = field(default_factory=list)


def _rows(instance: Instance) -> list[tuple[int, str, Row]]:
    """(chunk, section, features) of every register chunk."""
    words = set(_WORD.findall(instance.question.lower()))
    sections: dict[str, list[int]] = {}
    for chunk in instance.chunks:
        sections.setdefault(chunk.section, []).append(chunk.idx)
    rows: list[tuple[int, str, Row]] = []
    for chunk in instance.chunks:
        if chunk.kind == "register":
            own = sections[chunk.section]
            inside = own.index(chunk.idx) / max(1, len(own) - 1)
            overlap = len(words.intersection(_WORD.findall(chunk.text.lower())))
            place = chunk.idx / max(1, len(instance.chunks) - 1)
            rows.append((chunk.idx, chunk.section, (place, inside, float(chunk.tokens), float(len(chunk.entity_names)), float(overlap))))
    return rows


def auc(groups: Iterable[Sequence[tuple[bool, float]]]) -> tuple[float, float]:
    """(mean, standard error) over groups of the chance that a positive outranks a negative of its group."""
    values = []
    for group in groups:
        positive = [score for label, score in group if label]
        negative = [score for label, score in group if not label]
        if positive and negative:
            wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
            values.append(wins / (len(positive) * len(negative)))
    if len(values) < FEWEST:
        return 0.5, math.inf
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with partial pivoting."""
    n = len(right)
    rows = [[*matrix[i], right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    solution = [0.0] * n
    for i in reversed(range(n)):
        solution[i] = (rows[i][n] - sum(rows[i][j] * solution[j] for j in range(i + 1, n))) / rows[i][i]
    return solution


def _fit(rows: list[tuple[bool, list[float]]], steps: int = 6) -> list[float]:
    """Logistic regression by Newton's method with a small ridge; rows begin with a constant 1."""
    size = len(rows[0][1])
    weights = [0.0] * size
    for _ in range(steps):
        hessian = [[1e-3 * (i == j) for j in range(size)] for i in range(size)]
        gradient = [-1e-3 * w for w in weights]
        for label, x in rows:
            p = 1 / (1 + math.exp(-sum(w * v for w, v in zip(weights, x, strict=True))))
            spread = p * (1 - p)
            for i in range(size):
                gradient[i] += (label - p) * x[i]
                for j in range(i + 1):
                    hessian[i][j] += spread * x[i] * x[j]
        for i in range(size):
            for j in range(i):
                hessian[j][i] = hessian[i][j]
        weights = [w + d for w, d in zip(weights, _solve(hessian, gradient), strict=True)]
    return weights


def _model_auc(table: Table) -> tuple[float, float]:
    """Cross-validated AUC of the logistic regression over the first four features."""
    every = [row for group in table.groups for _, row in group]
    means = [sum(row[f] for row in every) / len(every) for f in range(_MODELLED)]
    spreads = [math.sqrt(sum((row[f] - means[f]) ** 2 for row in every) / len(every)) or 1.0 for f in range(_MODELLED)]

    def scaled(row: Row) -> list[float]:
        return [1.0] + [(row[f] - means[f]) / spreads[f] for f in range(_MODELLED)]

    groups = [[(label, scaled(row)) for label, row in group] for group in table.groups]
    scored = []
    for fold in range(_FOLDS):
        weights = _fit([item for i, group in enumerate(groups) if i % _FOLDS != fold for item in group])
        for group in groups[fold::_FOLDS]:
            scored.append([(label, sum(w * v for w, v in zip(weights, x, strict=True))) for label, x in group])
    return auc(scored)


class Audit:
    """Collects instances one at a time; keeps feature rows, not documents."""

    def __init__(self) -> None:
        self.evidence, self.answer = Table(), Table()

    def add(self, instance: Instance) -> None:
        """Count one instance."""
        if not instance.evidence:
            return
        wanted = {e.chunk_idx for e in instance.evidence}
        answer = instance.evidence[-1].chunk_idx
        rows = _rows(instance)
        own = next((section for idx, section, _ in rows if idx == answer), None)
        self.evidence.groups.append([(idx in wanted, row) for idx, _, row in rows])
        self.answer.groups.append([(idx == answer, row) for idx, section, row in rows if section == own])

    def report(self) -> dict[str, Any]:
        """AUC of every feature of both comparisons, and whether all gated ones pass."""
        found: dict[str, Any] = {"instances": len(self.evidence.groups), "tolerance": TOLERANCE}
        passed = True
        for name, table in (("evidence_among_registers", self.evidence), ("answer_in_section", self.answer)):
            measured: dict[str, Any] = {}
            for f, feature in enumerate(FEATURES):
                gated = feature != "overlap" or name == "answer_in_section"
                measured[feature] = _judged(*auc([[(label, row[f]) for label, row in group] for group in table.groups]), gated)
            if len(table.groups) >= FEWEST:
                measured["logistic"] = _judged(*_model_auc(table), True)
            passed &= all(item["passed"] for item in measured.values())
            found[name] = measured
        return found | {"passed": passed}


def _judged(value: float, error: float, gated: bool) -> dict[str, Any]:
    limit = max(TOLERANCE, 3 * error)
    return {
        "auc": round(value, 4),
        "standard_error": None if math.isinf(error) else round(error, 4),
        "gated": gated,
        "passed": not gated or abs(value - 0.5) <= limit,
    }
