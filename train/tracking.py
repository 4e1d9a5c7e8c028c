"""Where metrics go: metrics.jsonl always, Weights & Biases too when it is configured.

Departure from the usual callback: tracking may never end or stall a run. The JSON lines are the record; the
first failure of W&B is said once and switches W&B off.
"""

import json
import math
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from train.config import TrackingSettings


class Tracker:
    """Metrics of one stage. A run that is resumed appends to the same file."""

    def __init__(self, out_dir: Path, settings: TrackingSettings, config: Mapping[str, Any] | None = None) -> None:
        out_dir.mkdir(parents=True, exist_ok=True)
        self._stream = _open_lines(out_dir / "metrics.jsonl")
        self._wandb: Any = None
        if settings.kind == "wandb":
            self._try_wandb("init", lambda: self._start_wandb(out_dir, settings, config or {}))

    def _start_wandb(self, out_dir: Path, settings: TrackingSettings, config: Mapping[str, Any]) -> None:
        import wandb

        limits = wandb.Settings(login_timeout=30, init_timeout=60)  # without them a missing key asks on the terminal for ever
        self._wandb = wandb.init(
            project=settings.project, name=out_dir.name, dir=out_dir, mode=settings.mode, config=dict(config), settings=limits
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """One row of numbers; a number that is not finite becomes null in the file."""
        row = {name: float(value) for name, value in metrics.items()}
        self._write({"step": step, **{name: value if math.isfinite(value) else None for name, value in row.items()}})
        if self._wandb:
            self._try_wandb("log", lambda: self._wandb.log(row, step=step))

    def alarm(self, text: str) -> None:
        """Something that a person should look at: on stderr, in the file, and as a W&B alert."""
        print(f"navigator: alarm: {text}", file=sys.stderr, flush=True)
        self._write({"alarm": text})
        if self._wandb:
            self._try_wandb("alert", lambda: self._wandb.alert(title="navigator", text=text))

    def close(self) -> None:
        """End the tracking; calling it twice is fine."""
        self._stream.close()
        if self._wandb:
            self._try_wandb("finish", self._wandb.finish)
            self._wandb = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(self, row: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps({"time": round(time.time(), 3), **row}, ensure_ascii=False) + "\n")
        self._stream.flush()

    def _try_wandb(self, what: str, call: Any) -> None:
        """The one place where any exception is swallowed: W&B is a courtesy."""
        try:
            call()
        except Exception as error:  # noqa: BLE001
            self._wandb = None
            message = str(error).splitlines()[0] if str(error) else ""
            print(
                f"navigator: warning: wandb {what} failed and is off now; metrics.jsonl goes on ({type(error).__name__}: {message})",
                file=sys.stderr,
                flush=True,
            )


def _open_lines(path: Path) -> Any:
    """A file of JSON lines to append to, without the half line that a killed run may have left."""
    stream = path.open("a+b")
    size = stream.seek(0, os.SEEK_END)
    if size:
        stream.seek(0)
        whole = stream.read().rfind(b"\n") + 1
        stream.truncate(whole)
    stream.close()
    return path.open("a", encoding="utf-8")
