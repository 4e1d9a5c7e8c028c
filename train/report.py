"""One self-contained HTML page of a run: results with intervals, curves, endings, times, settings.

Nothing is loaded from anywhere, every text is escaped, and what a run does not have is left out.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.files import atomic_write
from env.navigator.instance import read_rows
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

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60656c;--rule:#d9dce0;--page:#fff;--accent:#2456c7;--alarm:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa1a9;--rule:#343a40;--page:#14171a;--accent:#7aa2ff;--alarm:#ff8a80}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:2rem 1rem 4rem}h1{font-size:1.6rem;margin:0}h2{font-size:1.1rem;margin:2.5rem 0 .5rem}
p{margin:.3rem 0;color:var(--soft)}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--rule);vertical-align:top;white-space:nowrap}
th{font-weight:600;color:var(--soft);font-size:.85rem;white-space:normal;vertical-align:bottom}td small{color:var(--soft)}
.curves{display:grid;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr));gap:1rem}figure{margin:0}
figcaption{font-size:.85rem;color:var(--soft)}
svg{width:100%;height:auto;display:block}.axis{fill:none;stroke:var(--rule)}.line{fill:none;stroke:var(--accent);stroke-width:1.6}
svg text{font-size:10px;fill:var(--soft)}.end{text-anchor:end}
.bar{width:9rem;height:.7rem}.track{fill:var(--rule)}.fill{fill:var(--accent);opacity:.75}
.whisker{stroke:var(--ink);stroke-width:2}
pre{overflow-x:auto;font-size:.8rem;border:1px solid var(--rule);padding:.8rem}.alarm{color:var(--alarm)}
@media print{body{font-size:11px}main{max-width:none;padding:0}h2{break-after:avoid}figure,tr{break-inside:avoid}
.scroll{overflow:visible}th,td{white-space:normal;padding-right:.4rem}.bar{display:none}}
"""


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
        _section("Accuracy", _accuracy(results["policies"])),
        _section("Paired comparisons", _comparisons(results["comparisons"])),
        _section("Accuracy by hops", _by_hops(summaries)),
        _section("How episodes go", _behaviour(summaries)),
        _section("Alarms", _alarms(run)),
        _section("Training", _curves(run)),
        _section("Time", _time(results["seconds"], manifests)),
        _section("Made with", _made_with(manifests)),
    ]
    page = run / "report.html"
    with atomic_write(page) as stream:
        stream.write(
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(run.name)}</title><style>{_STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
        )
    return page


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return ""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


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
    return _table(["policy", "ID", "OOD", "ID reward", "OOD reward"], rows)


def _comparisons(comparisons: Mapping[str, Any]) -> str:
    rows = []
    for name, splits in comparisons.items():
        for short, c in splits.items():
            low, high = c["interval"]
            span = f"{c['difference']:+.3f} <small>[{low:+.3f}, {high:+.3f}]</small>"
            counts = f"+{c['gained']} / -{c['lost']} of {c['n']}"
            rows.append([escape(name.replace("_", " ")), short.upper(), span, counts, f"{c['p_value']:.2g}", verdict(c)])
    return _table(["", "split", "difference", "gained / lost", "p (exact McNemar)", ""], rows)


def _by_hops(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """A column for every split and number of hops."""
    found = {
        name: {(split, int(hops)): own for split, s in summary["splits"].items() for hops, own in s["by_hops"].items()}
        for name, summary in summaries.items()
        if summary
    }
    columns = sorted({column for own in found.values() for column in own})
    head = ["policy", *(f"{SPLITS.get(split, split).upper()}, {hops} hops" for split, hops in columns)]
    return _table(head, ([escape(name), *(_share(own.get(column)) for column in columns)] for name, own in found.items()))


def _behaviour(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, summary in summaries.items():
        for split, s in summary.get("splits", {}).items():
            shares = [*s["endings"].values(), s["compress_use"], s["invalid_share"], s["distractor_capture"]]
            kept = "" if s["fact_retention"] is None else f"{s['fact_retention']:.3f}"
            counts = [f"{s['steps_over_min']:+.2f}", kept, str(s["failures"])]
            rows.append([escape(name), escape(SPLITS.get(split, split).upper()), *(f"{x:.3f}" for x in shares), *counts])
    head = ["policy", "split", "answered", "over ceiling", "out of steps", "uses COMPRESS", "invalid steps", "fell for distractor"]
    return _table([*head, "steps over min", "facts kept", "failed"], rows)


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
    return _table(["stage", "wall seconds", "CPU seconds"], rows)


def _made_with(manifests: Mapping[str, Mapping[str, Any]]) -> str:
    shown = {name: {key: m.get(key) for key in ("commit", "versions", "machine", "inputs")} for name, m in manifests.items() if m}
    if not shown:
        return ""
    text = escape(json.dumps(shown, indent=1))
    return f"<details><summary>Settings, versions and machine of every stage</summary><pre>{text}</pre></details>"
