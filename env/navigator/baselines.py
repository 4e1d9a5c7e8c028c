"""What can be answered without navigating: the baselines that say whether the environment asks for what it claims to.

Mechanical baselines are no policies: each is the exact probability that a reader of given means answers right, so a
split needs no sampling. For models the same means are handed over as one-step episodes behind env.protocol.Episode,
and the ordinary scheduler plays them.
"""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from env.navigator.actions import ParseError, Verb, parse
from env.navigator.grammar import read_question
from env.navigator.instance import Chunk, Instance
from env.navigator.map import render_map
from env.navigator.prompt import wording
from env.navigator.reward import Graded, is_correct
from env.navigator.settings import rules_from
from env.navigator.tokens import has_words, overlap, words_of
from env.navigator.validator import Reading
from env.protocol import Ending, Observation, StepResult

_VALUE = re.compile(r"[\w.,-]*\d[\w.,-]*\b")


class Given(StrEnum):
    """What the reader is given."""

    NOTHING = "no-read"
    """What a policy sees before its first read: the question and the map."""
    CHUNK = "single-chunk"
    """The question and the chunk that holds the answer, handed over."""
    DOCUMENT = "full-document"
    """The question and every chunk."""


def _guess(instance: Instance, values: Iterable[str]) -> float:
    """Probability that one of `values`, drawn uniformly, is the answer."""
    distinct = set(values)
    return sum(is_correct(value, instance.answer) for value in distinct) / len(distinct) if distinct else 0.0


def no_read(instance: Instance) -> float:
    """A guess among the values that the question and the names in the map show."""
    shown = [instance.question, *(name for chunk in instance.chunks for name in chunk.entity_names)]
    return _guess(instance, _VALUE.findall("\n".join(shown)))


def chance(instance: Instance) -> float:
    """A guess among all candidates of the document."""
    return _guess(instance, instance.candidate_answers)


def _read_one(instance: Instance, chunk: Chunk) -> float:
    """A guess among the candidates in one chunk; only in the entry that the question names, where that has any."""
    named = [name for name in chunk.entity_names if has_words(instance.question, name)]
    entry = max(named, key=len, default=None)
    twins = tuple(name for name in chunk.entity_names if entry and name != entry and name.startswith(entry))
    lines = [line for line in chunk.text.split("\n") if entry and line.startswith(entry) and not line.startswith(twins)]
    for text in ("\n".join(lines), chunk.text):
        if values := [value for value in instance.candidate_answers if has_words(text, value)]:
            return _guess(instance, values)
    return 0.0


def single_chunk(instance: Instance) -> float | None:
    """The answer chunk, handed over."""
    return _read_one(instance, instance.chunks[instance.evidence[-1].chunk_idx]) if instance.evidence else None


def top_overlap(instance: Instance) -> float:
    """The chunk that shares the most words with the question; the first of several."""
    words = words_of(instance.question)
    return _read_one(instance, max(instance.chunks, key=lambda chunk: overlap(words, chunk.text)))


def full_document(instance: Instance) -> float | None:
    """The whole document, by a parser that follows the question; None for a question of another grammar."""
    parsed = read_question(instance.question)
    if parsed is None:
        return None
    anchor, links, attribute = parsed
    end = Reading(instance).follow(anchor, [*links, attribute])
    return float(end is not None and is_correct(end, instance.answer))


MECHANICAL: dict[str, Callable[[Instance], float | None]] = {
    Given.NOTHING.value: no_read,
    "chance": chance,
    Given.CHUNK.value: single_chunk,
    "top-overlap": top_overlap,
    Given.DOCUMENT.value: full_document,
}
"""Probability of a right answer; None where the reader cannot be had for the instance."""


class Style(StrEnum):
    """How a model is asked to reply."""

    ANSWER_ONLY = "answer-only"
    """The value alone."""
    REASONING = "reasoning"
    """As a policy does: THOUGHT if needed, then ACTION."""


MAX_TOKENS = {Style.ANSWER_ONLY: 24, Style.REASONING: 512}
"""Bound on the completion."""

_SYSTEM = """You answer a question from what is shown below it.
- A question follows one entry to the next: the field of an entry names the entry where to go on.
- A field may show an old value beside the current one, and a name may have a near twin. Only the current value of the exact name counts.
- When what is shown does not settle the answer, give your best guess."""

_ASK = {
    Style.ANSWER_ONLY: "\nReply with the value alone, on one line.",
    Style.REASONING: (
        "\nReply with your reasoning on a line THOUGHT: if you need it, then, as the last line, exactly\nACTION: ANSWER <value>"
    ),
}
"""The styles differ behind everything long, so that they share a cached prefix."""


class OneStep(Graded):
    """One reply to a question with what is given; implements env.protocol.Episode."""

    shortest = 1

    def __init__(self, instance: Instance, given: Given, style: Style) -> None:
        self.instance, self.given, self.style = instance, given, style
        self.instance_id = instance.id
        self.rules = rules_from(instance.env)
        self.ending = None
        self.answer = None
        self.steps_used = 0

    @property
    def _chunks(self) -> list[Chunk]:
        if self.given is Given.CHUNK:
            return [self.instance.chunks[self.instance.evidence[-1].chunk_idx]]
        return self.instance.chunks if self.given is Given.DOCUMENT else []

    def observe(self) -> Observation:
        """The only prompt."""
        assert self.ending is None, "the episode has ended"
        words = wording(self.rules)
        shown = [words.question.format(question=self.instance.question)]
        if self.given is Given.NOTHING:
            shown.append(words.map.format(map=render_map(self.instance)))
        shown += [words.chunk.format(id=chunk.idx, text=chunk.text) for chunk in self._chunks]
        return Observation(system=_SYSTEM, static="".join(shown), dynamic=_ASK[self.style])

    def step(self, response: str, *, truncated: bool = False) -> StepResult:
        """Take the answer; an episode without one has used up its only step."""
        assert self.ending is None, "the episode has ended"
        self.answer = _bare_answer(response) if self.style is Style.ANSWER_ONLY else None if truncated else _acted_answer(response)
        self.steps_used = 1
        answered = self.answer is not None
        self.ending = Ending.ANSWERED if answered else Ending.BUDGET_EXHAUSTED
        return StepResult(
            kind=Verb.ANSWER.value if answered else None,
            ids=(),
            ok=answered,
            error=None if answered else "parse",
            used=sum(chunk.tokens for chunk in self._chunks),
            done=True,
        )

    def info(self) -> dict[str, Any]:
        """Facts of the instance, and which baseline this is."""
        instance = self.instance
        return {"split": instance.split, "n_hops": instance.n_hops, "given": self.given.value, "style": self.style.value}

    def metrics(self) -> dict[str, Any]:
        """Facts of the episode."""
        return {"correct": self.correct, "answer": self.answer}


def _acted_answer(response: str) -> str | None:
    """The value of an ANSWER, read as a policy's response is."""
    try:
        action = parse(response)
    except ParseError:
        return None
    return action.text if action.verb is Verb.ANSWER else None


def _bare_answer(response: str) -> str | None:
    """The first line that says anything, cut or not; whoever writes an ACTION all the same is understood."""
    line = next((line.strip() for line in response.splitlines() if line.strip()), None)
    return None if line is None else _acted_answer(line) or line
