"""A whole instance file as a page: counts, sizes, how it was made, and every question in a list."""

import json
from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.navigator.generate import report_path
from env.navigator.instance import read_instances
from train.page import section, table, write_page
from train.svg import histogram

_STYLE = """
.list td:nth-child(2){white-space:normal;min-width:18rem}.bad{color:var(--alarm);font-weight:600}
@media print{.list td:nth-child(2){min-width:0}}
"""


def write_split_page(path: Path, out: Path) -> int:
    """Write the page of an instance file and return the number of instances. InputError for a file without one."""
    sizes: dict[str, list[int]] = {
        name: []
        for name in ("tokens of a document", "chunks of a document", "tokens of a chunk", "entries of a register chunk", "fewest steps")
    }
    counts: Counter[tuple[str, int]] = Counter()
    rows, compression = [], 0
    for instance in read_instances(path):
        counts[instance.split, instance.n_hops] += 1
        compression += instance.compression_required
        sizes["tokens of a document"].append(instance.doc_tokens)
        sizes["chunks of a document"].append(len(instance.chunks))
        sizes["tokens of a chunk"] += [chunk.tokens for chunk in instance.chunks]
        sizes["entries of a register chunk"] += [len(chunk.entity_names) for chunk in instance.chunks if chunk.kind == "register"]
        sizes["fewest steps"].append(instance.min_steps)
        texts = [instance.id, instance.question, instance.answer, str(instance.n_hops), str(instance.min_steps)]
        rows.append([escape(text) for text in texts])
    if not rows:
        raise InputError(f"{path}: no instance in it")
    report = _report(path)
    hops = [[escape(split), str(n_hops), f"{n:,}"] for (split, n_hops), n in sorted(counts.items())]
    listed = table(["id", "question", "answer", "hops", "fewest steps"], rows)
    parts = [
        f"<h1>{escape(path.name)}</h1><p>{len(rows):,} instances; {compression:,} need compression.</p>",
        section("Hops", table(["split", "hops", "instances"], hops)),
        section("Sizes", f'<div class="curves">{"".join(histogram(name, values) for name, values in sizes.items())}</div>'),
        section("Rejections", _rejections(report)),
        section("Confound audit", _audit(report.get("audit"))),
        section("Instances", f'<div class="list">{listed}</div>'),
    ]
    write_page(out, path.name, "".join(parts), _STYLE)
    return len(rows)


def _report(path: Path) -> dict[str, Any]:
    """What `navigator generate` wrote beside the file; nothing for a file from elsewhere."""
    beside = report_path(path)
    if not beside.exists():
        return {}
    try:
        report = json.loads(beside.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{beside}: not JSON ({error}); write the instances again or move it away") from error
    if not isinstance(report, dict):
        raise InputError(f"{beside}: expected an object; write the instances again or move it away")
    return report


def _rejections(report: Mapping[str, Any]) -> str:
    if "rejections" not in report:
        return ""
    rows = [[escape(reason.replace("_", " ")), f"{n:,}", f"{n / report['attempts']:.1%}"] for reason, n in report["rejections"].items()]
    said = f"<p>{report['rejected']:,} of {report['attempts']:,} attempts ({report['rejection_rate']:.1%}) failed validation.</p>"
    return said + table(["reason", "attempts", "share"], rows)


def _audit(audit: Mapping[str, Any] | None) -> str:
    """Rank AUC by feature: 0.5 tells nothing."""
    if audit is None:
        return ""
    verdict = "passed" if audit["passed"] else '<span class="bad">failed</span>'
    said = f"<p>{verdict} over {audit['instances']:,} instances; rank AUC ± standard error: 0.5 tells nothing.</p>"
    first, second = audit["evidence_among_registers"], audit["answer_in_section"]
    rows = [[escape(feature.replace("_", " ")), _auc(first[feature]), _auc(second.get(feature))] for feature in first]
    return said + table(["feature", "evidence among register chunks", "answer chunk in its section"], rows)


def _auc(item: Mapping[str, Any] | None) -> str:
    if item is None:
        return ""
    spread = "" if item["standard_error"] is None else f" ± {item['standard_error']:.3f}"
    note = "" if item["gated"] else " <small>not gated</small>"
    return f"{item['auc']:.3f}{spread}{note}" if item["passed"] else f'<span class="bad">{item["auc"]:.3f}{spread} fails</span>'
