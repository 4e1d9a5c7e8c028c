"""Refuse a wrong model or adapter before an engine starts: a minute earlier, and in one sentence.

Reads configuration files and the headers of weight files only.
"""

import json
import struct
from pathlib import Path

from env.errors import InputError

REFERENCE_POLICIES = ("oracle", "random", "no-read")
"""Policies of the environment itself, which need no model."""


def check_model(name: str) -> None:
    """InputError unless `name` is a model folder or a hub model whose configuration can be had."""
    if Path(name).exists():
        if not (Path(name) / "config.json").is_file():
            raise InputError(f"{name} is no model folder: config.json is missing in it")
        return
    from transformers.utils import cached_file

    try:
        cached_file(name, "config.json")
    except OSError as error:
        raise InputError(
            f"{name} is neither a model folder here nor a hub model that can be fetched; set model.path or --policy"
        ) from error


def check_adapter(adapter: Path, model: str) -> None:
    """InputError unless `adapter` is a LoRA folder in PEFT's format that fits the weights of `model`."""
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        if not (adapter / name).is_file():
            raise InputError(f"{adapter} is no adapter folder: {name} is missing in it")
    weights = {name: shape for path in sorted(Path(model).glob("*.safetensors")) for name, shape in read_shapes(path).items()}
    if not weights:
        return  # a hub model: its weights are not here yet
    for name, shape in read_shapes(adapter / "adapter_model.safetensors").items():
        module, found, part = name.removeprefix("base_model.model.").partition(".lora_")
        if not found:
            continue
        target = weights.get(f"{module}.weight")
        side = 1 if part.startswith("A") else 0
        if target is None:
            raise InputError(f"{adapter} does not fit {model}: the model has no weight {module}; use the adapter of this model")
        if shape[side] != target[side]:
            raise InputError(
                f"{adapter} does not fit {model}: {module} is {target[0]} x {target[1]} there, the adapter has {shape[side]} in "
                f"place of {target[side]}; use the adapter of this model"
            )


def read_shapes(path: Path) -> dict[str, list[int]]:
    """Shapes of the tensors of a safetensors file, from its header. InputError for a file that is none."""
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(length, path.stat().st_size)))
        return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise InputError(f"{path}: not a safetensors file") from error
