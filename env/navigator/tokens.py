"""The model-free token counter that every size and charge of the navigator is measured in.

A token is a run of word characters or one single punctuation mark; white space costs nothing.
"""

import re

_TOKEN = re.compile(r"\w+|[^\w\s]")


def count_tokens(text: str) -> int:
    """Number of tokens in `text`."""
    return len(_TOKEN.findall(text))


def cut_tokens(text: str, limit: int) -> str:
    """`text` up to the end of its `limit`-th token; unchanged when it is not longer than that."""
    if limit <= 0:
        return ""
    for number, match in enumerate(_TOKEN.finditer(text), start=1):
        if number == limit:
            return text[: match.end()].rstrip() if count_tokens(text) > limit else text
    return text


def has_words(text: str, words: str) -> bool:
    """Whether `words` stand in `text` as whole words: "R1" does not stand in "R12"."""
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return True
        at = text.find(words, at + 1)
    return False
