"""The text of documents: how an entry is written, and the parser that reads it back.

An entry is one line, `<Name> — <Link>: <name>. <Attribute>: <value>. ... Notes: <filler>.` A field may show
an old value in one of two forms, so that no positional rule finds the current one:

    new (formerly old)
    old from 2014 to 2019, then new
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from env.navigator.vocabulary import REGISTERS, Attribute, Register

_THEN = re.compile(r"(.+) from \d{4} to \d{4}, then (.+)")
_FORMERLY = re.compile(r"(.+) \(formerly (.+)\)")

REGISTER_OF_TYPE = {register.type: register for register in REGISTERS}
REGISTER_OF_SECTION = {register.section: register for register in REGISTERS}


class Value(NamedTuple):
    """A field's value."""

    current: str
    old: str | None = None
    """The superseded value shown beside it."""


class Entry(NamedTuple):
    """One entry as read from the text."""

    name: str
    fields: dict[str, Value]
    """Every field before the notes, in order."""


def write_value(value: Value, years: tuple[int, int] | None) -> str:
    """Text of a value; an old one stands in brackets, or first when `years` (from, to) are given."""
    if value.old is None:
        return value.current
    if years is None:
        return f"{value.current} (formerly {value.old})"
    return f"{value.old} from {years[0]} to {years[1]}, then {value.current}"


def read_value(text: str) -> Value:
    """The value behind a field's text, in either form."""
    if text.endswith(")") and (match := _FORMERLY.fullmatch(text)):
        return Value(match[1], match[2])
    if ", then " in text and (match := _THEN.fullmatch(text)):
        return Value(match[2], match[1])
    return Value(text)


def read_entry(line: str) -> Entry | None:
    """The entry on a line, or None when the line is no entry."""
    name, dash, rest = line.partition(" — ")
    if not dash:
        return None
    fields = {}
    for part in rest.partition(". Notes: ")[0].split(". "):
        key, colon, text = part.partition(": ")
        if not colon:
            break
        fields[key] = read_value(text)
    return Entry(name, fields) if fields else None


def read_chunk(text: str) -> list[Entry]:
    """Every entry of a chunk's text, in order."""
    return [entry for line in text.split("\n") if (entry := read_entry(line))]


def follow(entry_of: Callable[[str], Entry | None], name: str, path: Sequence[str]) -> str | None:
    """Current value at the end of `path` (fields) from the entry `name`; None where an entry or a field is missing."""
    for field in path:
        entry = entry_of(name)
        if entry is None or field not in entry.fields:
            return None
        name = entry.fields[field].current
    return name


def write_number(attribute: Attribute, number: int) -> str:
    """A value of an attribute."""
    return f"{attribute.prefix}{number:,}" if attribute.separators else f"{attribute.prefix}{number}"


def question(anchor: str, links: tuple[str, ...], attribute: str) -> str:
    """The question that follows `links` from project `anchor` and asks for `attribute` at the end."""
    chain = "".join(f" of the {link.lower()}" for link in reversed(links))
    return f"What is the {attribute.lower()}{chain} of project {anchor}?"


@cache
def chain_registers(n_hops: int) -> tuple[Register, ...]:
    """The registers that a question of `n_hops` walks through, the project register first."""
    return tuple(REGISTERS[hop % len(REGISTERS)] for hop in range(n_hops))


def read_question(text: str) -> tuple[str, tuple[str, ...], str] | None:
    """(anchor, links in order, attribute) of a question of ours, or None."""
    head, found, anchor = text.removesuffix("?").partition(" of project ")
    if not found or not head.startswith("What is the "):
        return None
    attribute, *links = head.removeprefix("What is the ").split(" of the ")
    names = {register.link.lower(): register.link for register in REGISTERS}
    kinds = {attribute.name.lower(): attribute.name for register in REGISTERS for attribute in register.attributes}
    if attribute not in kinds or any(link not in names for link in links):
        return None
    return anchor, tuple(names[link] for link in reversed(links)), kinds[attribute]
