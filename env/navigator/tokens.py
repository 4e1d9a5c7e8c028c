"""The model-free token counter that every size and charge of the navigator is measured in.

A token is a run of word characters or one single punctuation mark; white space costs nothing. A summary is the
policy's own text, so its charge has a floor in bytes: see ByteFloor.
"""

import re
from typing import Protocol

_TOKEN = re.compile(r"\w+|[^\w\s]")

_ASCII = bytes(range(128))
_IS_WORD = bytes(re.match(r"\w", chr(code)) is not None for code in range(128)) + bytes(128)
_DASHES, _DOT = ("–".encode(), "—".encode()), "·".encode()
# Bytes that are no mark of their own: of a dash and of the dot, only the first byte is left to count.
_NOT_MARKS = bytes(code for code in range(128) if re.match(r"[\w\s]", chr(code))) + bytes(range(128, 192))
_WORD = re.compile(r"\w+")


def count_tokens(text: str) -> int:
    """Number of tokens in `text`.

    Documents are ASCII but for three marks, and counting them is where validation spends its time: such text is
    counted by kinds of bytes, many times as fast as by the regular expression that counts all other text.
    """
    raw = text.encode("utf-8", "replace")
    beyond = raw.translate(None, _ASCII)
    if beyond and beyond.replace(_DASHES[1], b"").replace(_DASHES[0], b"").replace(_DOT, b""):
        return len(_TOKEN.findall(text))
    # One byte a letter as one long number: a word begins at each 1 that follows no 1.
    letters = int.from_bytes(raw.translate(_IS_WORD), "big")
    return (letters & ~(letters >> 8)).bit_count() + len(raw.translate(None, _NOT_MARKS))


def cut_tokens(text: str, limit: int) -> str:
    """`text` up to the end of its `limit`-th token; unchanged when it is not longer than that."""
    if limit <= 0:
        return "" if _TOKEN.search(text) else text
    for number, match in enumerate(_TOKEN.finditer(text), start=1):
        if number == limit:
            return text[: match.end()].rstrip() if count_tokens(text) > limit else text
    return text


class TokenCounter(Protocol):
    """What charges a text and cuts it."""

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """A prefix of `text` that counts at most `limit`; `text` itself when that is not longer."""
        ...


class WordCounter:
    """The model-free counter as a TokenCounter."""

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        return count_tokens(text)

    def cut(self, text: str, limit: int) -> str:
        """`text` up to the end of its `limit`-th token."""
        return cut_tokens(text, limit)


class ByteFloor:
    """Charges by another counter, and at least one token for every `bytes_per_token` bytes of UTF-8.

    A run of word characters of any length is one token and white space is none, so a whole chunk joined by underscores,
    packed into CJK or spelt in kinds of white space would be held for one token or two. Ordinary text has four to
    eight bytes a token and never feels the floor.
    """

    def __init__(self, counter: TokenCounter, bytes_per_token: int) -> None:
        self._counter, self._bytes = counter, bytes_per_token

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        return max(self._counter.count(text), len(text.encode(errors="replace")) // self._bytes)

    def cut(self, text: str, limit: int) -> str:
        """A prefix of `text` that counts at most `limit`."""
        room = (max(0, limit) + 1) * self._bytes - 1
        raw = text.encode(errors="replace")  # a lone surrogate becomes one question mark: positions stay
        if len(raw) > room:
            text = text[: len(raw[:room].decode(errors="ignore"))].rstrip()
        return self._counter.cut(text, limit)


def find_words(text: str, words: str, start: int = 0) -> int:
    """Where `words` stand in `text` as whole words, from `start` on; -1 when they do not: "R1" does not stand in "R12"."""
    at = text.find(words, start)
    while at >= 0:
        end = at + len(words)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            break
        at = text.find(words, at + 1)
    return at


def has_words(text: str, words: str) -> bool:
    """Whether `words` stand in `text` as whole words."""
    return find_words(text, words) >= 0


def words_of(text: str) -> set[str]:
    """The different words of a text, in lower case."""
    return set(_WORD.findall(text.lower()))


def overlap(words: set[str], text: str) -> int:
    """How many of `words`, made by words_of, are words of `text`. Looking for few words is faster than reading all."""
    if "_" in text:  # part of a word to words_of, beside one to has_words
        return len(words & words_of(text))
    lower = text.lower()
    return sum(has_words(lower, word) for word in words)
