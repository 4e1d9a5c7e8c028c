"""Which counter an instance is played with: the model-free one, or a model's own tokenizer.

A tokenizer is a `tokenizer.json`, read by the small library `tokenizers` alone and only when an instance asks for it.
"""

from functools import cache
from pathlib import Path

from env.errors import SettingError
from env.navigator.settings import Rules
from env.navigator.tokens import ByteFloor, TokenCounter, WordCounter


class ModelCounter:
    """Counts with the tokenizer of a model, special tokens not added."""

    def __init__(self, model: str) -> None:
        """Load it from a model folder or by a hub name. SettingError when neither is there."""
        from tokenizers import Tokenizer

        file = Path(model) / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_file(str(file)) if Path(model).exists() else Tokenizer.from_pretrained(model)
        except Exception as error:  # the library raises nothing narrower
            raise SettingError(
                f"tokens is {model!r}, expected a model folder with a tokenizer.json or a hub name that can be fetched ({error})"
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def _ends(self, text: str) -> list[int]:
        """Where each token ends in `text`; a lone surrogate counts as a question mark."""
        encoded = self._tokenizer.encode(text.encode(errors="replace").decode(), add_special_tokens=False)
        return [end for _, end in encoded.offsets]

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        return len(self._ends(text))

    def cut(self, text: str, limit: int) -> str:
        """`text` up to the end of its `limit`-th token, or of an earlier one where a shorter text has more tokens."""
        ends = self._ends(text)
        if len(ends) <= limit:
            return text
        cuts = (text[:end].rstrip() for end in reversed(ends[: max(0, limit)]))
        return next((cut for cut in cuts if self.count(cut) <= limit), "")


@cache
def _counter(tokens: str, bytes_per_token: int) -> TokenCounter:
    counter = ModelCounter(tokens) if tokens else WordCounter()
    return ByteFloor(counter, bytes_per_token) if bytes_per_token > 0 else counter


def counter_for(rules: Rules) -> TokenCounter:
    """What charges summaries under these rules. SettingError for a tokenizer that cannot be had."""
    return _counter(rules.tokens, rules.bytes_per_token)
