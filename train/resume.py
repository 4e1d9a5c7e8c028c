"""Which checkpoint a training stage may go on from: the newest whole one that was made with the same settings, data and weights."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from env.files import atomic_write
from train.config import Config, digest, file_digest, plain, stamp

_MADE = ("checkpoints", "adapters", "adapter", "merged", "metrics.jsonl")
"""What a stage leaves in its folder."""


def training_inputs(config: Config, model: str, data: Path) -> dict[str, Any]:
    """What every training stage depends on, its own settings aside."""
    return {
        "model": [model, stamp(Path(model)), plain(config.model)],
        "data": file_digest(data),
        "lora": plain(config.lora),
        "seed": config.seed,
    }


def resume_from(out: Path, inputs: Mapping[str, Any]) -> str | None:
    """The checkpoint in `out/checkpoints` to go on from, or None to begin.

    `inputs` is everything that the result depends on, as JSON values. What another result left in `out` is removed, its metrics too:
    half of one run and half of another would look like one.
    """
    key = out / "checkpoints" / "inputs"
    wanted = digest(inputs)
    if key.exists() and key.read_text(encoding="utf-8") == wanted:
        return _last_checkpoint(key.parent)
    old = [out / name for name in _MADE if (out / name).exists()]
    if old:
        print(f"{out}: what is there was made with other settings, data or weights; starting over", file=sys.stderr, flush=True)
    for path in old:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with atomic_write(key) as stream:
        stream.write(wanted)
    return None


def _last_checkpoint(folder: Path) -> str | None:
    """The newest complete checkpoint of a trainer, or None; incomplete ones, of a run that was killed, are removed.

    The trainer writes trainer_state.json last.
    """
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    for path in found:
        if not (path / "trainer_state.json").is_file():
            shutil.rmtree(path)
    whole = [path for path in found if path.exists()]
    return str(whole[-1]) if whole else None
