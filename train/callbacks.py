"""What TRL's trainers report to us and say on the terminal."""

from typing import Any

from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging

from train.progress import Progress
from train.tracking import Tracker


def quiet(trainer: Any) -> None:
    """Leave the terminal to our own progress lines: the metrics are in metrics.jsonl."""
    trainer.remove_callback(PrinterCallback)
    logging.disable_progress_bar()


class MetricsCallback(TrainerCallback):  # type: ignore[misc]
    """Sends a trainer's logs to a Tracker and shows progress."""

    def __init__(self, tracker: Tracker, label: str) -> None:
        self.tracker, self.label = tracker, label
        self.progress: Progress | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open the progress display."""
        self.progress = Progress(self.label, total=state.max_steps - state.global_step, unit="step")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Numbers only; the trainer's closing summary is left out."""
        numbers = {name: value for name, value in (logs or {}).items() if isinstance(value, int | float)}
        if "train_runtime" not in numbers:
            self.tracker.log(numbers, step=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """One optimiser step is done."""
        assert self.progress is not None
        self.progress(1)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the display."""
        assert self.progress is not None
        self.progress.close()
