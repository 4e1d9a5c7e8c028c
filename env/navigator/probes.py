"""Five probes of one episode, for results that are too good or too bad to be what they seem.

    1  is an answer right although nothing was read               (then the question leaks)
    2  where in the document the answer stands                    (then position tells)
    3  do summaries keep the fact of the chunk they replace, and are they summaries at all
    4  reads again, and reads over the minimum
    5  is a wrong answer a known distractor, and of which kind

Pure counting: one Probe an episode, no means and no intervals. None stands for "there was nothing to ask".
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from env.navigator.actions import Verb
from env.navigator.prompt import Item
from env.navigator.settings import Rules
from env.navigator.tokens import has_words
from env.navigator.traces import Trace

FIFTHS = 5
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_REPEATING = 6
"""Fewer words than this are too few to call them repeated."""


class Degenerate(StrEnum):
    """What a text in the place of a summary may be."""

    EMPTY = "empty"
    """It has no name and no number of what it replaces: no word that has a capital or a digit there."""
    REPEATED = "repeated"
    """Less than a third of its words are different ones."""
    COPIED = "copied"
    """Its words are a piece of what it replaces, whatever stands between them, and it takes nine tenths of the summary cap or more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """What the probes find in one episode."""

    correct: bool
    reads_nothing: bool
    """Ended or stopped without one chunk read."""
    correct_unread: bool | None
    """Whether it is right; None where something was read."""
    answer_fifth: int | None
    """Fifth of the document (0 to 4, by chunks) that holds the answer; None without recorded evidence."""
    facts_kept: float | None
    """Share of the recorded facts in the chunks it compressed that stand in the summary."""
    degenerate: float | None
    """Share of its summaries that are."""
    degenerate_kinds: tuple[Degenerate, ...]
    """Of each degenerate summary, in order."""
    summaries: int
    rereads: int
    """Reads of a chunk that had been read before."""
    reread_compressed: bool
    """Whether one of them was of a chunk that it had compressed."""
    reads_over_min: int
    """Negative for an episode that ended early."""
    captured_by: str | None
    """Kind of the known distractor that a wrong answer is."""
    captured: bool | None
    """Whether a wrong answer is one; None without a wrong answer."""


def probe(trace: Trace) -> Probe:
    """The five probes of one episode."""
    episode, instance, reads = trace.episode, trace.instance, trace.reads
    wrong = episode.answer is not None and not episode.correct
    captured_by = episode.metrics()["distractor_capture"]
    found = [degenerate(step.summary, step.replaced.values(), episode.rules) for step in trace.steps if step.summary is not None]
    kinds = tuple(kind for kind in found if kind is not None)
    return Probe(
        correct=episode.correct,
        reads_nothing=not reads,
        correct_unread=None if reads else episode.correct,
        answer_fifth=FIFTHS * instance.evidence[-1].chunk_idx // len(instance.chunks) if instance.evidence else None,
        facts_kept=_facts_kept(trace),
        degenerate=len(kinds) / len(found) if found else None,
        degenerate_kinds=kinds,
        summaries=len(found),
        rereads=len(reads) - len(set(reads)),
        reread_compressed=_reread_compressed(trace),
        reads_over_min=len(reads) - instance.min_reads,
        captured_by=captured_by,
        captured=captured_by is not None if wrong else None,
    )


def degenerate(summary: Item, replaced: Collection[str], rules: Rules) -> Degenerate | None:
    """Why an item is no summary of the texts it replaces, or None."""
    words = [word.lower() for word in _WORD.findall(summary.text)]
    telling = {word.lower() for text in replaced for word in _WORD.findall(text) if word.lower() != word or _DIGIT.search(word)}
    if not telling.intersection(words):
        return Degenerate.EMPTY
    if len(words) >= _REPEATING and 3 * len(set(words)) < len(words):
        return Degenerate.REPEATED
    source = [word.lower() for text in replaced for word in _WORD.findall(text)]
    long = 10 * summary.tokens >= 9 * rules.summary_cap
    return Degenerate.COPIED if long and f" {' '.join(words)} " in f" {' '.join(source)} " else None


def _facts_kept(trace: Trace) -> float | None:
    """Unlike the episode's fact_retention this asks for every hop's value, and only when its own chunk is compressed."""
    kept = [
        has_words(step.summary.text, fact.value)
        for step in trace.steps
        if step.summary is not None
        for fact in trace.instance.evidence
        if str(fact.chunk_idx) in step.replaced
    ]
    return sum(kept) / len(kept) if kept else None


def _reread_compressed(trace: Trace) -> bool:
    compressed: set[str] = set()
    for step in trace.steps:
        if step.did == Verb.READ and step.result.ids[0] in compressed:
            return True
        compressed.update(step.replaced)
    return False
