"""One GRPO update with shared prefixes against the same update on padded rows of like length.

The rows are those of oracle episodes with detours, in groups, as GRPO sees them; the trainer is GRPO's own.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from peft import get_peft_model
from transformers import AutoTokenizer

from env.navigator.generate import instances
from env.navigator.instance import Instance
from env.navigator.settings import get_profile
from train.adapters import load_model, lora_config
from train.callbacks import quiet
from train.config import Config
from train.grpo_trainer import EpisodeGRPOTrainer, trainer_config
from train.samples import Sample, micro_batches
from train.teacher import play_teacher

_INSTANCES = 4
_REPEATS = 3


def _samples(played: Sequence[Instance], tokenizer: Any, group_size: int) -> list[Sample]:
    """Rows of a group of detouring oracles for each instance; advantages of both signs."""
    made = []
    for instance in played:
        for number in range(group_size):
            _, steps = play_teacher(instance, style="derive", noise=0.3, seed=number)
            for step in steps:
                prompt = tokenizer.apply_chat_template(step.observation.messages, add_generation_prompt=True, return_dict=False)
                completion = [*tokenizer.encode(step.response, add_special_tokens=False), tokenizer.eos_token_id]
                made.append(
                    Sample(
                        prompt_ids=list(prompt),
                        completion_ids=completion,
                        logprobs=[0.0] * len(completion),
                        advantage=1.0 if number % 2 else -1.0,
                        weight=1 / (len(played) * group_size * len(steps)),
                        instance_id=instance.id,
                        episode=number,
                    )
                )
    return made


def update(config: Config) -> dict[str, Any]:
    """Speed-up, the token ratio that bounds it where all time goes by tokens, and how exact it is."""
    tokenizer = AutoTokenizer.from_pretrained(config.model.path)
    # With a fresh LoRA half of the gradient is zero: the other half is what is compared.
    model = get_peft_model(load_model(config.model.path, config.model), lora_config(config.lora, dropout=0.0))
    plain = replace(config.grpo, shared_prefix=False)
    samples = _samples(list(instances(get_profile(config.profile), "dev", 0, _INSTANCES)), tokenizer, plain.group_size)
    with tempfile.TemporaryDirectory() as folder:
        trainer = EpisodeGRPOTrainer(
            model=model,
            tokenizer=tokenizer,
            args=trainer_config(plain, Path(folder), seed=0, bfloat16=config.model.dtype == "bfloat16"),
            settings=plain,
            collect=lambda step: samples,
        )
        quiet(trainer)
        padded = _logprobs(trainer, samples, shared=False)
        shared = _logprobs(trainer, samples, shared=True)
        samples[:] = [replace(sample, logprobs=values) for sample, values in zip(samples, padded, strict=True)]
        seconds: dict[bool, float] = {}
        gradient: dict[bool, torch.Tensor] = {}
        for kind in [False, True] * _REPEATS:
            trainer.settings = replace(plain, shared_prefix=kind)
            trainer.model.zero_grad()
            begun = time.monotonic()
            trainer.training_step(trainer.model, None)
            seconds[kind] = min(seconds.get(kind, float("inf")), time.monotonic() - begun)
            gradient[kind] = torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])
        computed = {
            kind: sum(batch.tokens for batch in micro_batches(samples, plain.micro_batch_tokens, shared=kind)) for kind in (False, True)
        }
    ratio, speedup = computed[False] / computed[True], seconds[False] / seconds[True]
    return {
        "model": config.model.path,
        "profile": config.profile,
        "rows": len(samples),
        "padded_tokens": computed[False],
        "shared_tokens": computed[True],
        "padded_seconds": seconds[False],
        "shared_seconds": seconds[True],
        "token_ratio": ratio,
        "speedup": speedup,
        "of_token_ratio": speedup / ratio,
        "max_logprob_difference": max(abs(a - b) for x, y in zip(padded, shared, strict=True) for a, b in zip(x, y, strict=True)),
        "gradient_relative_error": float((gradient[True] - gradient[False]).norm() / gradient[False].norm()),
    }


def _logprobs(trainer: EpisodeGRPOTrainer, samples: Sequence[Sample], *, shared: bool) -> list[list[float]]:
    """Of each row's completion, in the order of `samples`."""
    found: dict[int, list[float]] = {}
    for micro_batch in micro_batches(samples, trainer.settings.micro_batch_tokens, shared=shared):
        for row, values in zip(micro_batch.rows, trainer.logprobs(micro_batch).tolist(), strict=True):
            found[id(row)] = values[: len(row.completion_ids)]
    return [found[id(sample)] for sample in samples]
