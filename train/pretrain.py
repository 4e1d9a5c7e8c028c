"""Trains the laptop profile's base model from scratch: register text and exercises, never navigation.

Departs from a language-model run in its loss: tokens that the context determines (the completions of the
exercises) weigh 1, everything else 0.1. The loop is plain torch: the weighting is the only thing here that
no trainer offers, and a step takes 200 ms.
"""

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from env.files import atomic_write, replace_folder
from env.navigator.settings import Settings
from rollout.seeds import derive
from train.exercises import Example, examples
from train.settings import PretrainSettings
from train.tokenizer import build_tokenizer
from train.wiring import wire_copying

_OTHER_WEIGHT = 0.1
_BUCKET = 32
"""Examples are padded to a multiple of this."""


def tokenise(tokenizer: PreTrainedTokenizerFast, example: Example) -> tuple[list[int], list[float]]:
    """(ids, loss weights) of an example; weights belong to the token they stand beside."""
    texts = [*example.context, *(piece for line in example.lines for piece in line)]
    encoded: list[list[int]] = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
    newline = tokenizer.convert_tokens_to_ids("\n")
    ids: list[int] = [tokenizer.eos_token_id]
    weights: list[float] = [0.0]
    for i, piece in enumerate(encoded):
        answer = i >= len(example.context) and (i - len(example.context)) % 2 == 1
        ends_line = i < len(example.context) or answer
        ids += piece + [newline] * ends_line
        weights += [1.0 if answer else _OTHER_WEIGHT] * (len(piece) + ends_line)
    return ids, weights


class Batches(IterableDataset):  # type: ignore[misc]
    """Endless padded batches of (ids_BT, weights_BT), examples of like length together."""

    def __init__(self, settings: Settings, pretrain: PretrainSettings, seed: int) -> None:
        self.settings, self.pretrain, self.seed = settings, pretrain, seed

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        torch.set_num_threads(1)
        tokenizer = build_tokenizer(self.settings)
        waiting: dict[int, list[tuple[list[int], list[float]]]] = {}
        for example in examples(self.settings, self.seed, self.pretrain.long_share, self.pretrain.short_first):
            row = tokenise(tokenizer, example)
            width = -(-len(row[0]) // _BUCKET) * _BUCKET
            rows = waiting.setdefault(width, [])
            rows.append(row)
            if (len(rows) + 1) * width > self.pretrain.batch_tokens:
                yield _padded(rows, width, tokenizer.pad_token_id)
                waiting[width] = []


def _padded(rows: list[tuple[list[int], list[float]]], width: int, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as tensors of shape (B, width); padding weighs nothing."""
    ids_BT = torch.full((len(rows), width), pad)
    weights_BT = torch.zeros(len(rows), width)
    for b, (ids, weights) in enumerate(rows):
        ids_BT[b, : len(ids)] = torch.tensor(ids)
        weights_BT[b, : len(ids)] = torch.tensor(weights)
    return ids_BT, weights_BT


def new_model(settings: PretrainSettings, tokenizer: PreTrainedTokenizerFast, *, seed: int) -> LlamaForCausalLM:
    """The model of `settings.start`, or a randomly initialised one of the configured size.

    Llama and not Qwen2: AutoTokenizer puts Qwen's own tokenizer in place of ours in every folder that says qwen2.
    """
    if settings.start:
        return LlamaForCausalLM.from_pretrained(settings.start, dtype=torch.float32, attn_implementation=settings.attention)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=settings.max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": settings.rope_theta},
        tie_word_embeddings=True,
        attention_bias=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        attn_implementation=settings.attention,
    )
    model = LlamaForCausalLM(config)
    if settings.wire_copying:
        wire_copying(model, seed=seed)
    return model


def learning_rate(settings: PretrainSettings, share: float, step: int) -> float:
    """Linear warm-up, constant, then linear decay to a twentieth over the last part of the tokens."""
    warm = min(1.0, (step + 1) / settings.warmup_steps)
    decay = min(1.0, max(0.05, (1 - share) / settings.decay_share))
    return settings.learning_rate * warm * decay


def _loss(model: LlamaForCausalLM, ids_BT: torch.Tensor, weights_BT: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Weighted mean loss, and the share of fully determined tokens that are predicted right."""
    logits = model(input_ids=ids_BT[:, :-1], use_cache=False).logits
    targets, weights = ids_BT[:, 1:], weights_BT[:, 1:]
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(weights)
    with torch.no_grad():
        exact = weights == 1.0
        accuracy = (logits.argmax(-1) == targets)[exact].float().mean().item()
    return (losses * weights).sum() / weights.sum(), accuracy


def _average_gradients(model: LlamaForCausalLM) -> None:
    """Mean of every gradient over the processes, in one reduction."""
    grads = [p.grad for p in model.parameters()]
    flat = torch.cat([grad.flatten() for grad in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for grad, part in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
        grad.copy_(part.view_as(grad))


def pretrain(env: Settings, settings: PretrainSettings, out: Path, *, seed: int, log: Callable[[dict[str, Any]], None]) -> Path:
    """Train until the token budget is spent; the model folder `out` is rewritten every `save_steps` steps.

    `log` gets a row of metrics every `log_steps` steps, in this process.
    """
    with TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        others = [
            context.Process(target=_worker, args=(rank, env, settings, out, seed, folder), daemon=False)
            for rank in range(1, settings.processes)
        ]
        for process in others:
            process.start()
        try:
            _train(0, env, settings, out, seed, folder, log)
        finally:
            for process in others:
                process.join(timeout=30)
                process.kill()
    return out


def _worker(rank: int, env: Settings, settings: PretrainSettings, out: Path, seed: int, folder: str) -> None:
    _train(rank, env, settings, out, seed, folder, lambda row: None)


def _resume(state: Path, model: LlamaForCausalLM, optimizer: torch.optim.Optimizer) -> tuple[int, int]:
    """(tokens seen, steps) of a run that was stopped, its weights and moments loaded; it goes on with other documents."""
    if not state.exists():
        return 0, 0
    saved = torch.load(state, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["tokens"], saved["step"]


def _train(
    rank: int, env: Settings, settings: PretrainSettings, out: Path, seed: int, folder: str, log: Callable[[dict[str, Any]], None]
) -> None:
    """One data-parallel process; all start from the same weights and read different documents."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=settings.processes)
    tokenizer = build_tokenizer(env)
    model = new_model(settings, tokenizer, seed=seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    state = out.with_name(f"{out.name}.state") / "state.pt"
    seen, step = _resume(state, model, optimizer)
    batches = Batches(env, settings, derive(seed, "pretrain", rank, step))
    loader = iter(DataLoader(batches, batch_size=None, num_workers=1, prefetch_factor=8))
    begun_at, started = seen, time.monotonic()
    losses: list[float] = []
    accuracies: list[float] = []
    while seen < settings.tokens:
        ids_BT, weights_BT = next(loader)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(settings, seen / settings.tokens, step)
        loss, accuracy = _loss(model, ids_BT, weights_BT)
        loss.backward()
        _average_gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen, step = seen + settings.batch_tokens * settings.processes, step + 1
        losses.append(loss.item())
        accuracies.append(accuracy)
        finished = seen >= settings.tokens
        if step % settings.log_steps == 0 or finished:
            seconds = time.monotonic() - started
            log(
                {
                    "step": step,
                    "tokens": seen,
                    "loss": round(sum(losses) / len(losses), 4),
                    "answer_accuracy": round(sum(accuracies) / len(accuracies), 4),
                    "learning_rate": optimizer.param_groups[0]["lr"],
                    "tokens_per_second": round((seen - begun_at) / seconds),
                    "seconds": round(seconds, 1),
                }
            )
            losses, accuracies = [], []
        if rank == 0 and (step % settings.save_steps == 0 or finished):
            with replace_folder(out) as target:
                model.save_pretrained(target)
                tokenizer.save_pretrained(target)
                facts = {"settings": asdict(settings), "seed": seed, "tokens": seen, "steps": step}
                (target / "pretrain.json").write_text(json.dumps(facts, indent=1) + "\n")
            with atomic_write(state, "wb") as stream:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "tokens": seen, "step": step}, stream)
    dist.destroy_process_group()
