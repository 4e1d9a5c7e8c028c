"""Decides whether an instance may be used, from its TEXT alone: the parser reads every entry back.

The checks, in this order; an instance is rejected for the first that fails (`problems` reports all of one
kind, `reject_reason` the first):

    structure     chunk tokens and recorded totals are what the counter counts
    evidence      each evidence entry and value stands in its recorded chunk at its recorded offset
    chain         following current links from the anchor passes exactly the recorded chunks to the answer
    distance      evidence lies in distinct chunks, at least `evidence_distance` tokens apart, pair by pair
    wrong_path    no superseded link and no twin at any hop leads to the answer
    unique        the answer occurs exactly once as a field value, current or superseded
    shortcut      the anchor is not in the answer chunk, and that chunk is not the question's single best overlap
    bridge        no bridge entity stands in the question
    solvable      the recorded min_steps, min_reads and compression_required are right and within the budget
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from env.navigator.counters import counter_for
from env.navigator.generator import min_steps, needs_compression, token_offset
from env.navigator.grammar import Entry, follow, read_chunk, read_entry, read_question
from env.navigator.instance import Instance
from env.navigator.reward import normal
from env.navigator.settings import PROFILES, Rules, rules_from
from env.navigator.tokens import count_tokens, overlap, words_of


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands."""

    chunk: int
    entry: Entry


class Reading:
    """A document as its text says it is."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.rules: Rules = rules_from(instance.env)
        # Chunks are charged what they were recorded with; the floor in bytes is for summaries.
        self.count = counter_for(self.rules).count if self.rules.tokens else count_tokens
        self._parsed: dict[str, Place | None] = {}

    @cached_property
    def lines(self) -> dict[str, tuple[int, str]]:
        """Entry name -> (chunk, line), not yet parsed: most entries are never asked for."""
        return {
            name: (chunk.idx, line)
            for chunk in self.instance.chunks
            if chunk.kind == "register"
            for line in chunk.text.split("\n")
            for name, dash, _ in [line.partition(" — ")]
            if dash
        }

    def place(self, name: str) -> Place | None:
        """Where an entry stands and what it says; None when there is none."""
        if name not in self._parsed:
            chunk, line = self.lines.get(name, (-1, ""))
            entry = read_entry(line)
            self._parsed[name] = None if entry is None else Place(chunk, entry)
        return self._parsed[name]

    @property
    def distance(self) -> int:
        """Least distance between evidence, by the profile that made the instance."""
        profile = self.instance.generator.get("profile", "v1")
        return PROFILES.get(profile, PROFILES["v1"]).evidence_distance

    def follow(self, name: str, path: list[str]) -> str | None:
        """Current value at the end of `path` (fields) from `name`; None where the text does not lead on."""
        return follow(self._entry, name, path)

    def _entry(self, name: str) -> Entry | None:
        place = self.place(name)
        return None if place is None else place.entry


def _structure(doc: Reading) -> Iterator[str]:
    instance = doc.instance
    for chunk in instance.chunks:
        if (counted := doc.count(chunk.text)) != chunk.tokens:
            yield f"chunk {chunk.idx} has {counted} tokens, {chunk.tokens} are recorded"
        if chunk.tokens + doc.rules.summary_cap > doc.rules.ceiling:
            yield f"chunk {chunk.idx} of {chunk.tokens} tokens leaves no room for a summary under the ceiling {doc.rules.ceiling}"
    total = sum(chunk.tokens for chunk in instance.chunks)
    if total != instance.doc_tokens:
        yield f"the document has {total} tokens, doc_tokens records {instance.doc_tokens}"
    if [e.hop for e in instance.evidence] != list(range(1, instance.n_hops + 1)):
        yield f"evidence has hops {[e.hop for e in instance.evidence]}, expected 1 to {instance.n_hops}"
    for e in instance.evidence:
        if not 0 <= e.chunk_idx < len(instance.chunks):
            yield f"hop {e.hop}: chunk {e.chunk_idx} does not exist"


def _evidence(doc: Reading) -> Iterator[str]:
    instance = doc.instance
    for e in instance.evidence:
        place = doc.place(e.entity)
        if place is None or place.chunk != e.chunk_idx:
            yield f"hop {e.hop}: entry {e.entity!r} is not in chunk {e.chunk_idx}"
        elif e.field not in place.entry.fields or place.entry.fields[e.field].current != e.value:
            yield f"hop {e.hop}: the current {e.field} of {e.entity!r} is not {e.value!r}"
        elif (offset := token_offset(instance.chunks, e.chunk_idx, e.entity, doc.count)) != e.token_offset:
            yield f"hop {e.hop}: entry {e.entity!r} begins at token {offset}, {e.token_offset} is recorded"


def _chain(doc: Reading) -> Iterator[str]:
    instance = doc.instance
    parsed = read_question(instance.question)
    if parsed is None:
        yield f"the question {instance.question!r} is not of the known form"
        return
    anchor, links, attribute = parsed
    path, name = [*links, attribute], anchor
    if len(path) != instance.n_hops:
        yield f"the question has {len(path)} hops, n_hops records {instance.n_hops}"
        return
    for e, field in zip(instance.evidence, path, strict=True):
        if (e.entity, e.field) != (name, field):
            yield f"hop {e.hop}: the text leads to {field} of {name!r}, evidence records {e.field} of {e.entity!r}"
            return
        name = e.value
    if name != instance.answer:
        yield f"the chain ends at {name!r}, the answer records {instance.answer!r}"


def _distance(doc: Reading) -> Iterator[str]:
    for a, b in combinations(doc.instance.evidence, 2):
        if a.chunk_idx == b.chunk_idx:
            yield f"hops {a.hop} and {b.hop} are both in chunk {a.chunk_idx}"
        elif (gap := abs(a.token_offset - b.token_offset)) < doc.distance:
            yield f"hops {a.hop} and {b.hop} are {gap} tokens apart, at least {doc.distance} are needed"


def _wrong_path(doc: Reading) -> Iterator[str]:
    instance = doc.instance
    path = [e.field for e in instance.evidence]
    goal = normal(instance.answer)

    def leads(start: str | None, rest: list[str]) -> bool:
        end = None if start is None else doc.follow(start, rest)
        return end is not None and normal(end) == goal

    for e in instance.evidence:
        place = doc.place(e.entity)
        assert place is not None  # the check of the evidence comes first
        value = place.entry.fields[e.field]
        if leads(value.old, path[e.hop :]):
            yield f"hop {e.hop}: the superseded {e.field} {value.old!r} leads to the answer"
        for name in instance.chunks[e.chunk_idx].entity_names:
            if name != e.entity and name.startswith(e.entity + " ") and leads(name, path[e.hop - 1 :]):
                yield f"hop {e.hop}: the near-miss {name!r} leads to the answer"


def _unique(doc: Reading) -> Iterator[str]:
    goal = normal(doc.instance.answer)
    # Where the answer is a value, it also stands in the text once that is squeezed together: few chunks need parsing.
    found = sum(
        text is not None and normal(text) == goal
        for chunk in doc.instance.chunks
        if chunk.kind == "register" and goal in normal(chunk.text)
        for entry in read_chunk(chunk.text)
        for value in entry.fields.values()
        for text in value
    )
    if found != 1:
        yield f"the answer {doc.instance.answer!r} occurs {found} times as a field value, expected once"


def _shortcut(doc: Reading) -> Iterator[str]:
    instance = doc.instance
    if instance.n_hops < 2:
        return
    anchor, answer = instance.evidence[0].entity, instance.evidence[-1].chunk_idx
    if anchor in instance.chunks[answer].text:
        yield f"the anchor {anchor!r} stands in the answer chunk {answer}"
    words = words_of(instance.question)
    own = overlap(words, instance.chunks[answer].text)
    # The first chunk that is as near ends the search; those of the same section are the likeliest.
    section = instance.chunks[answer].section
    others = sorted((chunk for chunk in instance.chunks if chunk.idx != answer), key=lambda chunk: chunk.section != section)
    if all(overlap(words, chunk.text) < own for chunk in others):
        yield f"the answer chunk {answer} is the question's single best word overlap"


def _bridge(doc: Reading) -> Iterator[str]:
    for e in doc.instance.evidence[:-1]:
        if e.value in doc.instance.question:
            yield f"hop {e.hop}: the bridge {e.value!r} stands in the question"


def _solvable(doc: Reading) -> Iterator[str]:
    instance = doc.instance
    costs = [instance.chunks[e.chunk_idx].tokens for e in instance.evidence]
    expected = {
        "min_steps": min_steps(costs, doc.rules.ceiling, doc.rules.assumed_summary),
        "min_reads": len(costs),
        "compression_required": needs_compression(costs, doc.rules.ceiling),
    }
    for name, value in expected.items():
        if getattr(instance, name) != value:
            yield f"{name} is {getattr(instance, name)}, it should be {value}"
    if instance.min_steps > doc.rules.budget(instance.n_hops):
        yield f"min_steps {instance.min_steps} is over the budget {doc.rules.budget(instance.n_hops)}"


CHECKS: dict[str, Callable[[Reading], Iterator[str]]] = {
    "structure": _structure,
    "evidence": _evidence,
    "chain": _chain,
    "distance": _distance,
    "wrong_path": _wrong_path,
    "unique": _unique,
    "shortcut": _shortcut,
    "bridge": _bridge,
    "solvable": _solvable,
}


_BY_GRAMMAR = ("evidence", "chain", "wrong_path", "unique")
"""Checks that must read entries and questions."""


def unchecked(instance: Instance) -> tuple[str, ...]:
    """Checks that cannot be made, because another system wrote the instance in a grammar of its own.

    An instance that says it is ours must pass them all.
    """
    doc = Reading(instance)
    ours = instance.generator.get("profile") in PROFILES
    if ours or any(_structure(doc)) or not (any(_evidence(doc)) or any(_chain(doc))):
        return ()
    return _BY_GRAMMAR


def problems(instance: Instance, skipped: Collection[str] = ()) -> tuple[str, list[str]] | None:
    """(check, its complaints) of the first check that fails; None for a good instance."""
    doc = Reading(instance)
    for name, check in CHECKS.items():
        if name not in skipped and (found := list(check(doc))):
            return name, found
    return None
