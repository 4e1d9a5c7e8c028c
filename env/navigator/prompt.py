"""The prompt of a step: rules, question, map, then everything that changes.

Nothing static follows anything that changes, so an engine's prefix cache serves all of an episode's prompts,
and all episodes of an instance, up to the ledger.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from env.navigator.instance import Instance
from env.navigator.map import render_map
from env.navigator.settings import Rules


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """Something held."""

    text: str
    tokens: int
    """What holding it costs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """What a policy is told of its own past."""

    read: Iterable[str]
    dropped: Iterable[str]
    compressed: Iterable[str]
    last: str
    """The last action and its result."""
    steps_used: int
    budget: int
    used: int
    """Tokens held."""
    ceiling: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Wording:
    """One set of templates."""

    system: str
    question: str
    map: str
    ledger: str
    chunk: str
    summary: str
    nothing: str
    """Shown for an empty list."""
    reply: str


FULL = Wording(
    system="""You answer a question about a document that is far larger than you may hold. Every turn is a fresh start:
you see only what this prompt shows, and whatever you do not keep in a summary is forgotten.

Rules
- You may hold at most {ceiling} tokens. An action that would exceed this ends the episode without an answer.
- A chunk costs the tokens that the map shows. A summary costs its own tokens and is cut after {summary_cap}.
- The question follows one entry to the next; each register is in alphabetical order, so the map shows which chunk lists a name.
- A field may show an old value beside the current one, and a name may have a near twin. Only the current value of the exact name counts.
- You have a limited number of steps. Reading again is allowed and costs a step.

Reply with your reasoning on a line THOUGHT: if you need it, then, as the last line, exactly one of
ACTION: READ <chunk id>
ACTION: COMPRESS <ids held> :: <your summary of them>
ACTION: DROP <ids held>
ACTION: ANSWER <value>
COMPRESS replaces the items by your summary, as item S1, S2 and so on. A summary is your only memory: keep names and values you need.""",
    question="Question: {question}\n\n",
    map="Document map: id · section · first entry – last entry · tokens\n{map}\n\n",
    ledger="""Memory ledger
Read so far: {read}
Dropped: {dropped}
Compressed: {compressed}
Last action: {last}
Steps used: {steps_used} of {budget}
Tokens held: {used} of {ceiling}

Working context
""",
    chunk="[ chunk {id} ]\n{text}\n",
    summary="[ summary {id} ]\n{text}\n",
    nothing="none",
    reply="\nWhat is your next action?",
)

BRIEF = Wording(
    system=(
        "Answer the question. ACTION: READ id, COMPRESS ids :: summary, DROP ids or ANSWER value. "
        "Held tokens stay under {ceiling}, a summary under {summary_cap}."
    ),
    question="Question: {question}\n",
    map="Map:\n{map}\n",
    ledger=(
        "read {read} · dropped {dropped} · compressed {compressed} · last {last} · "
        "step {steps_used} of {budget} · held {used} of {ceiling}\n"
    ),
    chunk="chunk {id}:\n{text}\n",
    summary="{id}: {text}\n",
    nothing="none",
    reply="next",
)


def wording(rules: Rules) -> Wording:
    """The templates that the rules ask for."""
    return BRIEF if rules.brief else FULL


def system_text(rules: Rules) -> str:
    """The rules; the same for every instance that is played under them."""
    return wording(rules).system.format(ceiling=rules.ceiling, summary_cap=rules.summary_cap)


def static_text(instance: Instance, rules: Rules) -> str:
    """Question and map; the same for every step of an instance."""
    words = wording(rules)
    return words.question.format(question=instance.question) + words.map.format(map=render_map(instance))


def dynamic_text(ledger: Ledger, held: Mapping[str, Item], rules: Rules) -> str:
    """Ledger and working context."""
    words = wording(rules)

    def listed(ids: Iterable[str]) -> str:
        return " ".join(ids) or words.nothing

    parts = [
        words.ledger.format(
            read=listed(ledger.read),
            dropped=listed(ledger.dropped),
            compressed=listed(ledger.compressed),
            last=ledger.last or words.nothing,
            steps_used=ledger.steps_used,
            budget=ledger.budget,
            used=ledger.used,
            ceiling=ledger.ceiling,
        )
    ]
    for name, item in held.items():
        parts.append((words.summary if name.startswith("S") else words.chunk).format(id=name, text=item.text))
    if not held:
        parts.append(words.nothing + "\n")
    return "".join(parts) + words.reply
