"""Turns instances into the same task charged in a model's own tokens.

Everything that is measured in tokens is measured again: chunks, offsets, totals, min_steps. A summary may be as long as
before (cap and assumed summary times the file's mean ratio of model tokens to recorded ones), and the ceiling is again the
file's largest chunk beside the longest summary. The rule `tokens` names the tokenizer, so that a file says by itself what
it is played with. Chunks vary more in length in such tokens: the report counts the instances that need no compression any more.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from env.errors import InputError, SettingError
from env.navigator.counters import counter_for
from env.navigator.generator import min_steps, needs_compression, token_offset
from env.navigator.instance import Instance, read_instances, to_row, write_rows
from env.navigator.settings import Rules, rules_from
from env.navigator.tokens import TokenCounter


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What a file measures in a model's tokens."""

    ratio: float
    """Model tokens to recorded tokens, over all chunks."""
    largest: int
    """Model tokens of the largest chunk."""


def measure(path: Path, counter: TokenCounter) -> Scale:
    """Count every chunk of a file. InputError for a file without any."""
    recorded = counted = largest = 0
    for instance in read_instances(path):
        costs = [counter.count(chunk.text) for chunk in instance.chunks]
        recorded += sum(chunk.tokens for chunk in instance.chunks)
        counted += sum(costs)
        largest = max([largest, *costs])
    if not recorded:
        raise InputError(f"{path}: no tokens to count in it")
    return Scale(ratio=counted / recorded, largest=largest)


def scaled_rules(rules: Rules, tokens: str, scale: Scale, *, ceiling: int | None, summary_cap: int | None) -> Rules:
    """The rules in the tokens of the model `tokens`. SettingError for a ceiling that a chunk and a summary do not fit under."""
    cap = summary_cap or round(rules.summary_cap * scale.ratio)
    least = scale.largest + cap
    if ceiling is not None and ceiling < least:
        raise SettingError(f"--ceiling is {ceiling}: the largest chunk ({scale.largest}) and a summary ({cap}) need {least}; raise it")
    return replace(
        rules, tokens=tokens, ceiling=ceiling or least, summary_cap=cap, assumed_summary=max(1, round(rules.assumed_summary * scale.ratio))
    )


def recounted(instance: Instance, rules: Rules) -> Instance:
    """The instance charged by the tokenizer that `rules` names; the text stays."""
    counter = counter_for(rules)
    chunks = [replace(chunk, tokens=counter.count(chunk.text)) for chunk in instance.chunks]
    evidence = []
    for e in instance.evidence:
        # An entry that is not written as ours is placed at the start of its chunk.
        at = token_offset(chunks, e.chunk_idx, e.entity, counter.count)
        evidence.append(replace(e, token_offset=at if at >= 0 else sum(chunk.tokens for chunk in chunks[: e.chunk_idx])))
    costs = [chunks[e.chunk_idx].tokens for e in evidence]
    return replace(
        instance,
        chunks=chunks,
        evidence=evidence,
        doc_tokens=sum(chunk.tokens for chunk in chunks),
        min_steps=min_steps(costs, rules.ceiling, rules.assumed_summary),
        compression_required=needs_compression(costs, rules.ceiling),
        env=instance.env | asdict(rules),
    )


def recount_file(path: Path, out: Path, *, tokens: str, ceiling: int | None = None, summary_cap: int | None = None) -> dict[str, Any]:
    """Write the instances of `path` in the tokens of the model `tokens`; returns a report.

    `ceiling` and `summary_cap` are in model tokens; splits that are compared with one another should share them.
    """
    scale = measure(path, counter_for(Rules(tokens=tokens)))
    report: dict[str, Any] = {"tokens": tokens, **asdict(scale), "without_compression": 0}

    def rows() -> Iterator[dict[str, Any]]:
        for instance in read_instances(path):
            if instance.env.get("tokens"):
                raise InputError(f"{path}: {instance.id} is counted by {instance.env['tokens']} already; give the file it was made from")
            rules = scaled_rules(rules_from(instance.env), tokens, scale, ceiling=ceiling, summary_cap=summary_cap)
            found = recounted(instance, rules)
            report.update(ceiling=rules.ceiling, summary_cap=rules.summary_cap)
            report["without_compression"] += not found.compression_required
            yield to_row(found)

    report["instances"] = write_rows(out, rows())
    return report
