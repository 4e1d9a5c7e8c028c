"""The data card of an instance file: counts, sizes, rejections, audit and hash, for a person to read."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from env.navigator.instance import Instance
from env.navigator.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Smallest, largest and sum of a count."""

    low: int = 0
    high: int = 0
    total: int = 0
    n: int = 0

    def __add__(self, other: "Range") -> "Range":
        if not self.n or not other.n:
            return other if other.n else self
        return Range(low=min(self.low, other.low), high=max(self.high, other.high), total=self.total + other.total, n=self.n + other.n)

    @classmethod
    def of(cls, values: Iterable[int]) -> "Range":
        """The range of some values."""
        found = list(values)
        return cls(low=min(found), high=max(found), total=sum(found), n=len(found)) if found else cls()

    def to_dict(self) -> dict[str, float]:
        """As it stands in the report."""
        return {"min": self.low, "mean": round(self.total / max(1, self.n), 1), "max": self.high}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """Counts over instances; sums of two are those of both."""

    instances: int = 0
    hops: Counter[int] = field(default_factory=Counter)
    min_steps: Counter[int] = field(default_factory=Counter)
    compression_required: int = 0
    doc_tokens: Range = Range()
    chunks: Range = Range()
    chunk_tokens: Range = Range()
    entries: Range = Range()
    """In a register chunk, twins included."""

    @classmethod
    def of(cls, instances: list[Instance]) -> "Sizes":
        """Those of some instances."""
        chunks = [chunk for instance in instances for chunk in instance.chunks]
        return cls(
            instances=len(instances),
            hops=Counter(instance.n_hops for instance in instances),
            min_steps=Counter(instance.min_steps for instance in instances),
            compression_required=sum(instance.compression_required for instance in instances),
            doc_tokens=Range.of(instance.doc_tokens for instance in instances),
            chunks=Range.of(len(instance.chunks) for instance in instances),
            chunk_tokens=Range.of(chunk.tokens for chunk in chunks),
            entries=Range.of(len(chunk.entity_names) for chunk in chunks if chunk.kind == "register"),
        )

    def __add__(self, other: "Sizes") -> "Sizes":
        return Sizes(
            instances=self.instances + other.instances,
            hops=self.hops + other.hops,
            min_steps=self.min_steps + other.min_steps,
            compression_required=self.compression_required + other.compression_required,
            doc_tokens=self.doc_tokens + other.doc_tokens,
            chunks=self.chunks + other.chunks,
            chunk_tokens=self.chunk_tokens + other.chunk_tokens,
            entries=self.entries + other.entries,
        )

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the report."""
        return {
            "hops": {str(hops): n for hops, n in sorted(self.hops.items())},
            "min_steps": {str(steps): n for steps, n in sorted(self.min_steps.items())},
            "compression_required": self.compression_required,
            "doc_tokens": self.doc_tokens.to_dict(),
            "chunks": self.chunks.to_dict(),
            "chunk_tokens": self.chunk_tokens.to_dict(),
            "entries": self.entries.to_dict(),
        }


def card(name: str, settings: Settings, report: dict[str, Any]) -> str:
    """The card of file `name` in Markdown."""
    sizes, audit, rules = report["sizes"], report["audit"], settings.rules
    counts = ", ".join(f"{n} of {hops} hops" for hops, n in sizes["hops"].items())
    rejections = ", ".join(f"{reason} {n}" for reason, n in report["rejections"].items()) or "none"
    lines = [
        f"# {name}",
        "",
        f"{report['instances']} instances of the navigator task, profile {report['profile']}, split {report['split']}, "
        f"from index {report['start']}: {counts}.",
        f"Each is one question over one procedural document under a ceiling of {rules.ceiling} tokens "
        f"(summaries up to {rules.summary_cap}, budget {rules.budget_base} + {rules.budget_per_hop} steps a hop). "
        "Names, numbers and texts are invented; the files hold no personal data.",
        "",
        "| | min | mean | max |",
        "|---|---|---|---|",
        *(
            f"| {text} | {sizes[key]['min']} | {sizes[key]['mean']} | {sizes[key]['max']} |"
            for key, text in (
                ("doc_tokens", "tokens a document"),
                ("chunks", "chunks a document"),
                ("chunk_tokens", "tokens a chunk"),
                ("entries", "entries a register chunk"),
            )
        ),
        "",
        f"Compression is required in {sizes['compression_required']}; fewest steps: "
        + ", ".join(f"{steps} in {n}" for steps, n in sizes["min_steps"].items())
        + ".",
        f"Rejected: {report['rejected']} of {report['attempts']} attempts ({report['rejection_rate']:.1%}): {rejections}.",
        "",
        f"Confound audit over {audit['instances']} instances: {'passed' if audit['passed'] else 'FAILED'} (rank AUC, 0.5 tells nothing).",
        "",
        "| feature | evidence among registers | answer chunk in its section |",
        "|---|---|---|",
    ]
    first, second = audit["evidence_among_registers"], audit["answer_in_section"]
    lines += [f"| {feature} | {_cell(first[feature])} | {_cell(second[feature])} |" for feature in first]
    lines += [
        "",
        f"sha256 of the uncompressed lines: `{report['sha256']}`",
        "",
        "Made again, byte for byte, by "
        f"`navigator generate --profile {report['profile']} --split {report['split']} --start {report['start']} --n {report['instances']}` "
        f"(generator version {report['generator_version']}).",
    ]
    return "\n".join(lines) + "\n"


def _cell(item: dict[str, Any]) -> str:
    note = "" if item["gated"] else " (not gated)"
    return f"{item['auc']:.3f}{note}{'' if item['passed'] else ' FAILED'}"
