"""Marks evidence and distractors inside a chunk's text.

An instance records what they say and in which chunk, not where in it: the place is found again in the text, in the
entry's own line where the text has the registers' form, else in any line that names the entity.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from env.navigator.instance import Instance
from env.navigator.tokens import find_words

KINDS = ("evidence", "superseded_link", "superseded_value", "near_miss_entity", "near_miss_value")
"""Those with a colour of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Something to mark."""

    kind: str
    """evidence, or the kind of a distractor."""
    hop: int
    entity: str
    field: str | None
    """Where the value stands; None when that is not recorded."""
    value: str


def notes_of(instance: Instance) -> dict[int, list[Note]]:
    """What is to be marked in each chunk, evidence first."""
    notes: dict[int, list[Note]] = {}
    for e in instance.evidence:
        notes.setdefault(e.chunk_idx, []).append(Note(kind="evidence", hop=e.hop, entity=e.entity, field=e.field, value=e.value))
    for d in instance.distractors:
        notes.setdefault(d.chunk_idx, []).append(Note(kind=d.kind, hop=d.hop, entity=d.entity, field=None, value=d.value))
    return notes


def marked(text: str, notes: Sequence[Note]) -> str:
    """The text as HTML, escaped, with a <mark> around each entity and value; of two that overlap the earlier note wins."""
    spans: list[tuple[int, int, Note]] = []
    for note in notes:
        for start, end in _places(text, note):
            if all(end <= a or b <= start for a, b, _ in spans):
                spans.append((start, end, note))
    parts, at = [], 0
    for start, end, note in sorted(spans, key=lambda span: span[:2]):
        parts += [escape(text[at:start]), mark(text[start:end], note.kind, f"{note.kind.replace('_', ' ')}, hop {note.hop}")]
        at = end
    return "".join([*parts, escape(text[at:])])


def mark(text: str, kind: str, title: str) -> str:
    """One marked piece of text."""
    return f'<mark class="{kind if kind in KINDS else "other"}" title="{escape(title)}">{escape(text)}</mark>'


def _places(text: str, note: Note) -> list[tuple[int, int]]:
    """Where the entity and, behind it in its line, the value stand."""
    starts = [match.start() for match in re.finditer(r"^", text, re.MULTILINE)]
    lines = [(start, text[start:].partition("\n")[0]) for start in starts]
    own = [line for line in lines if line[1].partition(" — ")[0] == note.entity and " — " in line[1]]
    places = []
    for start, line in own or lines:
        entity = _find(line, note.entity, 0)
        if entity is None:
            continue
        places.append((start + entity[0], start + entity[1]))
        named = _find(line, f"{note.field}:", entity[1]) if note.field else None
        value = _find(line, note.value, named[1] if named else entity[1])
        if value is not None:
            places.append((start + value[0], start + value[1]))
    return places


def _find(line: str, words: str, start: int) -> tuple[int, int] | None:
    """The first place of some whole words."""
    at = find_words(line, words, start) if words else -1
    return (at, at + len(words)) if at >= 0 else None
