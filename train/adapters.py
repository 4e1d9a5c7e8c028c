"""LoRA adapters: a fresh one for a stage, written whole for the engine, merged into the weights after SFT.

GRPO starts from the merged SFT model with a FRESH adapter: switching it off then gives the SFT policy, so that
the KL reference is free and exact. Training the SFT adapter itself would make the untrained base the reference.
"""

from pathlib import Path
from typing import Any

from env.files import replace_folder
from train.config import ModelSettings
from train.settings import LoraSettings


def load_model(model: str, settings: ModelSettings) -> Any:
    """A causal language model for training."""
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, settings.dtype), attn_implementation=settings.attention)


def lora_config(settings: LoraSettings, *, dropout: float) -> Any:
    """PEFT's configuration for all linear layers; B starts at zero, so a fresh adapter changes nothing."""
    from peft import LoraConfig

    return LoraConfig(
        r=settings.r, lora_alpha=settings.alpha, lora_dropout=dropout, target_modules="all-linear", bias="none", task_type="CAUSAL_LM"
    )


def save_adapter(model: Any, folder: Path) -> None:
    """Write a PEFT model's adapter, whole or not at all, in the format that vLLM loads."""
    with replace_folder(folder) as target:
        model.save_pretrained(target, safe_serialization=True)


def merge(model: str, adapter: Path, out: Path, settings: ModelSettings) -> Path:
    """A model folder with the adapter added to the weights, tokenizer included."""
    from peft import PeftModel
    from transformers import AutoTokenizer

    merged = PeftModel.from_pretrained(load_model(model, settings), str(adapter)).merge_and_unload()
    with replace_folder(out) as target:
        merged.save_pretrained(target, safe_serialization=True)
        AutoTokenizer.from_pretrained(model).save_pretrained(target)
    return out
