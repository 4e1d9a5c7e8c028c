"""Carriers: ways to write a text so that the word counter sees fewer words than there are; and the strategy that hoards by them.

Each carries the documents of this environment there and back, and what a cut leaves of it is read as far as it goes.
"""

import base64
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from env.navigator.episode import NavigatorEpisode
from env.navigator.grammar import follow, read_chunk, read_question

Strategy = Callable[[NavigatorEpisode], Iterator[str]]
"""What a policy of one episode says, step by step."""


class Carrier(Protocol):
    """A way to write text and to read it back."""

    def write(self, text: str) -> str:
        """`text` in disguise, on one line."""
        ...

    def read(self, carried: str) -> str:
        """The text behind what is left of it."""
        ...


class Plainly:
    """as it is, lines joined by a mark."""

    def write(self, text: str) -> str:
        """One line."""
        return text.replace("\n", " ¦ ")

    def read(self, carried: str) -> str:
        """Lines again."""
        return carried.replace(" ¦ ", "\n")


class Underscored:
    """spaces as underscores and marks as letters behind two, which makes one word of everything."""

    MARKS = "\n—–·:.,;-()="

    def write(self, text: str) -> str:
        """One word."""
        return re.sub(r"\W", lambda m: "_" if m[0] == " " else f"__{chr(ord('a') + self.MARKS.index(m[0]))}", text)

    def read(self, carried: str) -> str:
        """Spaces and marks again."""
        return re.sub(r"__([a-l])|_", lambda m: self.MARKS[ord(m[1]) - ord("a")] if m[1] else " ", carried)


class Lettered:
    """every space and mark as a letter that looks like one (a click, a modifier), which makes one word of everything."""

    MARKS = " \n—–·:.,;-()="
    LETTERS = "ǀǁǂǃˑːˌʻʽˍʕʔɂ"
    WRITE, READ = str.maketrans(MARKS, LETTERS), str.maketrans(LETTERS, MARKS)

    def write(self, text: str) -> str:
        """One word."""
        return text.translate(self.WRITE)

    def read(self, carried: str) -> str:
        """Spaces and marks again."""
        return carried.translate(self.READ)


class Ideographs:
    """fourteen bits to a CJK character, without a space between them."""

    def write(self, text: str) -> str:
        """One word."""
        bits = "".join(f"{byte:08b}" for byte in text.encode())
        return "".join(chr(0x4E00 + int(bits[i : i + 14].ljust(14, "0"), 2)) for i in range(0, len(bits), 14))

    def read(self, carried: str) -> str:
        """Bytes again; an incomplete last one is dropped."""
        bits = "".join(f"{ord(c) - 0x4E00:014b}" for c in carried)
        return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8)).rstrip(b"\0").decode(errors="ignore")


class WhiteSpace:
    """sixteen kinds of white space between two letters: half a byte each, and white space is free."""

    KINDS = " \t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f"

    def write(self, text: str) -> str:
        """Two words and what is between them."""
        return "a" + "".join(self.KINDS[byte >> 4] + self.KINDS[byte & 15] for byte in text.encode()) + "z"

    def read(self, carried: str) -> str:
        """Bytes again; an incomplete last one is dropped."""
        halves = [self.KINDS.index(c) for c in carried[1:] if c in self.KINDS]
        return bytes(16 * a + b for a, b in zip(halves[::2], halves[1::2], strict=False)).decode(errors="ignore")


class Zipped:
    """compressed by zlib and spelt in letters and digits; a cut one cannot be read at all."""

    def write(self, text: str) -> str:
        """One word, but for the rare mark."""
        return base64.b64encode(zlib.compress(text.encode(), 9), altchars=b"_-").decode().rstrip("=")

    def read(self, carried: str) -> str:
        """The text, or nothing."""
        try:
            return zlib.decompress(base64.b64decode(carried + "=" * (-len(carried) % 4), altchars=b"_-")).decode()
        except (ValueError, zlib.error):
            return ""


CARRIERS: dict[str, Carrier] = {
    "plainly": Plainly(),
    "underscored": Underscored(),
    "lettered": Lettered(),
    "ideographs": Ideographs(),
    "white-space": WhiteSpace(),
    "zipped": Zipped(),
}


def _look_up(question: str, text: str) -> str:
    """The mechanical reader over a text: the answer to the question, or "lost"."""
    entries = {entry.name: entry for entry in read_chunk(text)}
    parsed = read_question(question)
    found = follow(entries.get, parsed[0], [*parsed[1], parsed[2]]) if parsed else None
    return "lost" if found is None else found


def hoard(carrier: Carrier) -> Strategy:
    """Walk the chain, keep every chunk whole in one summary written by `carrier`, answer from that alone.

    Nothing is chosen, so nothing is compressed: it is right only where a summary holds more text than it is charged for.
    """

    def strategy(episode: NavigatorEpisode) -> Iterator[str]:
        kept = ""
        for e in episode.instance.evidence:
            yield f"ACTION: READ {e.chunk_idx}"
            whole = "\n".join([kept, episode.instance.chunks[e.chunk_idx].text]).lstrip()
            yield f"ACTION: COMPRESS {' '.join(episode.held)} :: {carrier.write(whole)}"
            kept = carrier.read(next(iter(episode.held.values())).text)
        yield f"ACTION: ANSWER {_look_up(episode.instance.question, kept)}"

    return strategy
