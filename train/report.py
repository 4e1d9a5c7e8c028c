"""One self-contained HTML page of a run: results with intervals, curves, endings, times, settings.

Nothing is loaded from anywhere, every text is escaped, and what a run does not have is left out.
"""

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.navigator.instance import read_rows
from train.page import section, table, write_page
from train.results import POLICIES, SPLITS, verdict
from train.svg import interval_bar, line_chart

_CURVES = {
    "sft": {"loss": "SFT loss"},
    "grpo": {
        "reward": "reward (sampled, training)",
        "accuracy": "accuracy (sampled, training)",
        "kl": "KL to the SFT policy",
        "grad_norm": "gradient norm",
        "ratio_deviation": "|trainer / engine ratio - 1|",
        "usable_groups": "groups with a spread",
        "steps_per_episode": "steps an episode",
        "cache_hit": "prompt tokens from the cache",
    },
}


def write_report(run: Path) -> Path:
    """Write `run/report.html` from what the folder holds and return its path. InputError when there are no results."""
    path = run / "results.json"
    if not path.exists():
        raise InputError(f"{path} is missing: navigator run writes it at the end; give the folder of a finished run")
    results = json.loads(path.read_text(encoding="utf-8"))
    summaries = {name: _json(run / "eval" / name / "summary.json") for name in POLICIES}
    manifests = {name: _json(run / f"{name}.json") for name in results["seconds"]}
    intro = "Long-context navigator: held-out episodes, 95% intervals, everything counted per episode."
    parts = [
        f"<h1>{escape(run.name)}</h1><p>{intro}</p>",
        section("Accuracy", _accuracy(results["policies"])),
        section("Paired comparisons", _comparisons(results["comparisons"])),
        section("Accuracy by hops", _by_hops(summaries)),
        section("How episodes go", _behaviour(summaries)),
        section("Alarms", _alarms(run)),
        section("Training", _curves(run)),
        section("Time", _time(results["seconds"], manifests)),
        section("Made with", _made_with(manifests)),
    ]
    page = run / "report.html"
    write_page(page, run.name, "".join(parts))
    return page


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _share(numbers: Mapping[str, Any] | None) -> str:
    if not numbers:
        return ""
    low, high = numbers["interval"]
    bar = interval_bar(numbers["accuracy"], low, high)
    return f"{bar}{numbers['accuracy']:.3f} <small>[{low:.3f}, {high:.3f}] n={numbers['n']}</small>"


def _accuracy(policies: Mapping[str, Any]) -> str:
    rows = []
    for name, splits in policies.items():
        rewards = [f"{splits[s]['reward']:.3f}" if s in splits else "" for s in SPLITS.values()]
        rows.append([escape(name), *(_share(splits.get(s)) for s in SPLITS.values()), *rewards])
    return table(["policy", "ID", "OOD", "ID reward", "OOD reward"], rows)


def _comparisons(comparisons: Mapping[str, Any]) -> str:
    rows = []
    for name, splits in comparisons.items():
        for short, c in splits.items():
            low, high = c["interval"]
            span = f"{c['difference']:+.3f} <small>[{low:+.3f}, {high:+.3f}]</small>"
            counts = f"+{c['gained']} / -{c['lost']} of {c['n']}"
            rows.append([escape(name.replace("_", " ")), short.upper(), span, counts, f"{c['p_value']:.2g}", verdict(c)])
    return table(["", "split", "difference", "gained / lost", "p (exact McNemar)", ""], rows)


def _by_hops(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """A column for every split and number of hops."""
    found = {
        name: {(split, int(hops)): own for split, s in summary["splits"].items() for hops, own in s["by_hops"].items()}
        for name, summary in summaries.items()
        if summary
    }
    columns = sorted({column for own in found.values() for column in own})
    head = ["policy", *(f"{SPLITS.get(split, split).upper()}, {hops} hops" for split, hops in columns)]
    return table(head, ([escape(name), *(_share(own.get(column)) for column in columns)] for name, own in found.items()))


def _behaviour(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, summary in summaries.items():
        for split, s in summary.get("splits", {}).items():
            shares = [*s["endings"].values(), s["compress_use"], s["invalid_share"], s["distractor_capture"]]
            kept = "" if s["fact_retention"] is None else f"{s['fact_retention']:.3f}"
            counts = [f"{s['steps_over_min']:+.2f}", kept, str(s["failures"])]
            rows.append([escape(name), escape(SPLITS.get(split, split).upper()), *(f"{x:.3f}" for x in shares), *counts])
    head = ["policy", "split", "answered", "over ceiling", "out of steps", "uses COMPRESS", "invalid steps", "fell for distractor"]
    return table([*head, "steps over min", "facts kept", "failed"], rows)


def _metrics(run: Path, stage: str) -> list[dict[str, Any]]:
    path = run / stage / "metrics.jsonl"
    return [row for _, row in read_rows(path)] if path.exists() else []


def _alarms(run: Path) -> str:
    found = [row["alarm"] for stage in _CURVES for row in _metrics(run, stage) if "alarm" in row]
    return "".join(f'<p class="alarm">{escape(text)}</p>' for text in found)


def _curves(run: Path) -> str:
    charts = []
    for stage, curves in _CURVES.items():
        rows = _metrics(run, stage)
        for name, title in curves.items():
            # A resumed run logs a step again: the last row of a step counts.
            points = {row["step"]: row[name] for row in rows if row.get(name) is not None}
            charts.append(line_chart(title, sorted(points.items())))
    return f'<div class="curves">{"".join(charts)}</div>' if any(charts) else ""


def _time(seconds: Mapping[str, float], manifests: Mapping[str, Mapping[str, Any]]) -> str:
    cpu = {name: f"{m['cpu_seconds']:.0f}" for name, m in manifests.items() if "cpu_seconds" in m}
    rows = [[escape(name), f"{s:.0f}", cpu.get(name, "")] for name, s in seconds.items()]
    return table(["stage", "wall seconds", "CPU seconds"], rows)


def _made_with(manifests: Mapping[str, Mapping[str, Any]]) -> str:
    shown = {name: {key: m.get(key) for key in ("commit", "versions", "machine", "inputs")} for name, m in manifests.items() if m}
    if not shown:
        return ""
    text = escape(json.dumps(shown, indent=1))
    return f"<details><summary>Settings, versions and machine of every stage</summary><pre>{text}</pre></details>"
