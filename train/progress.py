"""Progress of long work: a bar on a terminal, a plain line every few seconds in a log."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

LINE_SECONDS = 5.0
"""Least time between two lines of a log."""


class Progress:
    """Counts work done; call it with the number of items just finished.

    with Progress("generate id_test", total=1000, unit="instance") as advance:
        advance(1, rejected=3)
    """

    def __init__(
        self,
        label: str,
        *,
        total: int | None,
        unit: str = "item",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._total, self._unit, self._clock = label, total, unit, clock
        self._stream = stream or sys.stderr
        self._done = 0
        self._facts: dict[str, Any] = {}
        self._started = self._said = clock()
        self._bar: Any = None
        if self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(desc=label, total=total, unit=f" {unit}", file=self._stream, dynamic_ncols=True)

    def __call__(self, n: int = 1, **facts: Any) -> None:
        """`n` more items are finished; `facts` are shown beside the count until the next call changes them."""
        self._done += n
        self._facts |= facts
        if self._bar is not None:
            self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update(n)
        elif self._clock() - self._said >= LINE_SECONDS:
            self._say()

    def close(self) -> None:
        """Show the final count."""
        if self._bar is not None:
            self._bar.close()
        else:
            self._say()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _say(self) -> None:
        self._said = self._clock()
        print(self._line(self._said - self._started), file=self._stream, flush=True)

    def _line(self, seconds: float) -> str:
        """`label: 120/1000 instances (12%), 33.1/s, 26 s left, rejected 3`."""
        rate = self._done / seconds if seconds > 0 else 0.0
        parts = [
            f"{self._done}/{self._total} {self._unit}s ({self._done / self._total:.0%})" if self._total else f"{self._done} {self._unit}s"
        ]
        if rate:
            parts.append(f"{rate:.1f}/s")
        if rate and self._total and self._done < self._total:
            parts.append(f"{(self._total - self._done) / rate:.0f} s left")
        else:
            parts.append(f"{seconds:.0f} s")
        parts += [f"{name} {value}" for name, value in self._facts.items()]
        return f"{self._label}: {', '.join(parts)}"
