"""Reads an action from a response, as tolerantly as real models need.

The action is the last line that begins with `ACTION:` and everything after it, joined; without such a line
the last line that is not empty. Leading ids count, other text after them is ignored: a real model copies the
map line behind the id (`READ 20 · Projects · ...`).
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from env.errors import NavigatorError


class Verb(StrEnum):
    """What a policy can do."""

    READ = "READ"
    COMPRESS = "COMPRESS"
    DROP = "DROP"
    ANSWER = "ANSWER"


class ParseError(NavigatorError):
    """A response that is no action; the message is the reason that the ledger shows."""


@dataclass(frozen=True, slots=True)
class Action:
    """A response understood."""

    verb: Verb
    ids: tuple[str, ...] = ()
    """Chunk numbers ("7") and summaries ("S1"), each once, in the order given."""
    text: str = ""
    """The summary of COMPRESS, the value of ANSWER."""


_VERB = re.compile(r"\s*([A-Za-z]+)(.*)", re.DOTALL)
_ID = re.compile(r"[\s,\[\]()]*([sS]?)([0-9]+)(?!\w)")


def _action_text(response: str) -> str:
    lines = response.splitlines()
    for i in range(len(lines) - 1, -1, -1):
        line = lines[i].lstrip()
        if line[:7].lower() == "action:":  # upper() would take a dotless i for an I
            return " ".join([line[7:], *lines[i + 1 :]])
    return next((line for line in reversed(lines) if line.strip()), "")


def _leading_ids(text: str) -> tuple[str, ...]:
    ids: dict[str, None] = {}
    at = 0
    while match := _ID.match(text, at):
        ids[match[1].upper() + (match[2].lstrip("0") or "0")] = None
        at = match.end()
    return tuple(ids)


def parse(response: str) -> Action:
    """The action in a response. ParseError with a short reason; nothing else is ever raised."""
    match = _VERB.fullmatch(_action_text(response))
    verb = match[1].upper() if match else ""
    if match is None or verb not in Verb.__members__:
        raise ParseError("unknown verb")
    rest = match[2]
    if verb == Verb.ANSWER:
        if not rest.strip():
            raise ParseError("empty answer")
        return Action(Verb.ANSWER, text=rest.strip())
    head, separator, summary = rest.partition("::")
    ids = _leading_ids(head)
    if not ids:
        raise ParseError("no id")
    if verb == Verb.READ:
        if len(ids) != 1 or ids[0].startswith("S"):
            raise ParseError("READ takes exactly one chunk id")
        return Action(Verb.READ, ids)
    if verb == Verb.DROP:
        return Action(Verb.DROP, ids)
    if not separator or not summary.strip():
        raise ParseError("empty summary")
    return Action(Verb.COMPRESS, ids, summary.strip())
