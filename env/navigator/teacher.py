"""The oracle teacher's words, and the filter that keeps them honest.

The oracle's choices may use privilege, its words may not. Every THOUGHT begins with what is needed, so that what
comes after can be looked up by it: a model that had to open with the finding itself could not tell "found" from
"not here" when it chose its first word. In the `derive` style a THOUGHT writes the
comparison that finds a chunk in the map; `assert` only names the chunk, as the published teacher did.
A wrong READ of a noisy oracle is played but never becomes a row: only the recovery from it is taught.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from env.navigator.instance import Instance
from env.navigator.tokens import has_words
from env.protocol import Observation

STYLES = ("derive", "assert")
MOST_STEPS = 1.5
"""A trajectory longer than this many times min_steps is not taught."""

_VALUE = re.compile(r"[A-Z]{2}-\d+|\d[\d,]*\d")


def read_response(style: str, *, wanted: str, field: str, section: str, first: str, last: str, chunk: int) -> str:
    """READ a chunk for one field of one entity."""
    where = f"{section}: {first} ≤ {wanted} ≤ {last}, chunk {chunk}." if style == "derive" else f"{section}: chunk {chunk}."
    return f"THOUGHT: need {field} of {wanted}. {where}\nACTION: READ {chunk}"


def drop_response(*, wanted: str, field: str, chunk: int) -> str:
    """DROP a chunk that does not hold what is wanted."""
    return f"THOUGHT: need {field} of {wanted}. not in chunk {chunk}.\nACTION: DROP {chunk}"


def compress_response(*, held: list[str], entity: str, field: str, value: str, following: str) -> str:
    """COMPRESS everything held into the one fact that leads on."""
    # The chunk is named right before the action, as a READ's is: an id is copied from where it was just written.
    ids = sorted(held, key=lambda name: name.startswith("S"))
    thought = f"THOUGHT: need {field} of {entity}. {entity}: {field} = {value}. Next {following} of {value}, chunk {ids[0]}."
    return f"{thought}\nACTION: COMPRESS {' '.join(ids)} :: {entity}: {field} = {value}"


def answer_response(*, entity: str, field: str, value: str) -> str:
    """ANSWER with the value of the last entity."""
    return f"THOUGHT: need {field} of {entity}. {entity}: {field} = {value}.\nACTION: ANSWER {value}"


def template_texts() -> list[str]:
    """Every word the teacher may write besides names and fields, for a word-level tokenizer."""
    return ["THOUGHT need of chunk has not in Next ACTION READ COMPRESS DROP ANSWER unknown S"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaughtStep:
    """One step of a teacher's trajectory."""

    observation: Observation
    response: str
    held: tuple[str, ...]
    """Texts in the working context before the step."""
    read: int | None
    """The chunk that the step read, if it read one."""


def leak(instance: Instance, steps: list[TaughtStep]) -> str | None:
    """What a trajectory says or does without having seen it, or None.

    Every entity name and value that a response writes stands in that step's prompt, and an evidence chunk is
    read only while its entity stands in the question or the working context: the map does not count.
    """
    names = {name for chunk in instance.chunks for name in chunk.entity_names}
    wanted = {e.chunk_idx: e.entity for e in instance.evidence}
    for step in steps:
        prompt = step.observation.static + step.observation.dynamic
        written = {name for name in names if name in step.response} | set(_VALUE.findall(step.response))
        for text in written:
            if not has_words(prompt, text):
                return f"{text!r} is written but not in the prompt"
        entity = wanted.get(step.read) if step.read is not None else None
        if entity is not None and not any(has_words(text, entity) for text in (instance.question, *step.held)):
            return f"chunk {step.read} is read before {entity!r} was seen"
    return None


def rows(instance: Instance, steps: list[TaughtStep]) -> Iterator[dict[str, Any]]:
    """SFT rows of a trajectory, one a step; wrong reads are left out."""
    evidence = {e.chunk_idx for e in instance.evidence}
    for number, step in enumerate(steps):
        if step.read is None or step.read in evidence:
            yield {"instance_id": instance.id, "step": number, "messages": step.observation.messages, "completion": step.response}
