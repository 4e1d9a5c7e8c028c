"""What a run folder holds as numbers: results.json and the table that the run prints."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from env.navigator.instance import read_rows
from train.config import plain
from train.statistics import paired, with_interval

POLICIES = ("oracle", "grpo", "sft", "base", "random", "no-read")
SPLITS = {"id_test": "id", "ood_test": "ood"}
COMPARISONS = (("grpo", "sft"), ("sft", "base"))


def collect_results(run: Path, seconds: Mapping[str, float]) -> dict[str, Any]:
    """{"policies": ..., "comparisons": ..., "seconds": ...} of the evaluations in `run/eval`; absent ones are left out."""
    summaries = {name: _summary(run, name) for name in POLICIES}
    policies: dict[str, Any] = {}
    for name, summary in summaries.items():
        for split, short in SPLITS.items():
            if summary and split in summary["splits"]:
                numbers = summary["splits"][split]
                kept = {key: numbers[key] for key in ("n", "accuracy", "interval", "reward")}
                policies.setdefault(name, {})[short] = kept
    comparisons = {}
    for a, b in COMPARISONS:
        if summaries[a] and summaries[b]:
            comparisons[f"{a}_vs_{b}"] = _compare(run, a, b)
    return {"policies": policies, "comparisons": comparisons, "seconds": dict(seconds)}


def _summary(run: Path, name: str) -> dict[str, Any] | None:
    path = run / "eval" / name / "summary.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _outcomes(run: Path, name: str, split: str) -> dict[str, bool]:
    rows = (row for _, row in read_rows(run / "eval" / name / "trajectories.jsonl"))
    return {row["instance_id"]: bool(row["correct"]) for row in rows if row["split"] == split}


def _compare(run: Path, a: str, b: str) -> dict[str, Any]:
    """Both policies on the instances that both were evaluated on."""
    found = {}
    for split, short in SPLITS.items():
        ours, theirs = _outcomes(run, a, split), _outcomes(run, b, split)
        shared = [key for key in ours if key in theirs]
        if shared:
            found[short] = plain(paired([ours[key] for key in shared], [theirs[key] for key in shared]))
    return found


def verdict(comparison: Mapping[str, Any]) -> str:
    """A paired comparison in words."""
    if comparison["p_value"] >= 0.05:
        return "no difference shown"
    return "better" if comparison["difference"] > 0 else "worse"


def results_table(results: Mapping[str, Any]) -> str:
    """Policies by split with 95% intervals, and the paired comparisons, for a terminal."""
    lines = [f"{'policy':10}{'ID':>32}{'OOD':>32}"]
    for name, splits in results["policies"].items():
        lines.append(f"{name:10}" + "".join(f"{_cell(splits.get(short)):>32}" for short in SPLITS.values()))
    for name, splits in results["comparisons"].items():
        for short, c in splits.items():
            low, high = c["interval"]
            lines.append(
                f"{name.replace('_', ' ')}, {short.upper()}: {c['difference']:+.3f} [{low:+.3f}, {high:+.3f}], "
                f"+{c['gained']} -{c['lost']} of {c['n']}, p = {c['p_value']:.2g}: {verdict(c)}"
            )
    return "\n".join(lines)


def _cell(numbers: Mapping[str, Any] | None) -> str:
    if numbers is None:
        return "-"
    return with_interval(numbers["accuracy"], numbers["interval"], numbers["n"])
