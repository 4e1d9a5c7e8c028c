"""SFT on single steps: TRL's SFTTrainer on rows that are tokenised here.

Departs from handing TRL prompt/completion text: it would tokenise both together and cut where the prefix
differs. Rows are (prompt ids of the chat template, completion ids, end of turn) with loss on the completion.
An example of the dataset is an episode, so that what its rows begin with is computed once.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.navigator.instance import read_rows
from train.adapters import load_model, lora_config, merge, save_adapter
from train.config import Config, plain
from train.tracking import Tracker

Row = dict[str, list[int]]
"""Token ids: `prompt`, and `completion` with the end of turn."""


def tokenise(tokenizer: Any, row: dict[str, Any], where: str) -> Row:
    """Ids of one row. InputError for a row without anything to learn."""
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list) or not isinstance(row.get("completion"), str):
        raise InputError(f"{where}: expected an object with a list 'messages' and a text 'completion'")
    if not row["completion"].strip():
        raise InputError(f"{where}: 'completion' is empty: a row without a target teaches nothing")
    prompt = tokenizer.apply_chat_template(row["messages"], add_generation_prompt=True, return_dict=False)
    completion = [*tokenizer.encode(row["completion"], add_special_tokens=False), tokenizer.eos_token_id]
    return {"prompt": list(prompt), "completion": completion}


def load_episodes(tokenizer: Any, path: Path, max_length: int) -> tuple[list[list[Row]], int]:
    """(rows by episode, how many rows were longer than `max_length` and dropped). InputError when none is left.

    Rows that follow one another with the same `instance_id` are an episode; a row without one is its own.
    """
    episodes, dropped = [], 0
    found = ((row.get("instance_id", where) if isinstance(row, dict) else where, where, row) for where, row in read_rows(path))
    for _, rows in groupby(found, key=lambda item: item[0]):
        made = [tokenise(tokenizer, row, where) for _, where, row in rows]
        kept = [row for row in made if len(row["prompt"]) + len(row["completion"]) <= max_length]
        dropped += len(made) - len(kept)
        if kept:
            episodes.append(kept)
    if not episodes:
        raise InputError(f"{path}: none of its {dropped} rows fits sft.max_length {max_length}")
    return episodes, dropped


def collate(episodes: Sequence[dict[str, list[Row]]], pad: int) -> dict[str, Any]:
    """A batch of whole episodes: rows of shape (B, L) padded on the left, prefixes apart."""
    import torch

    from train.shared_prefix import Packed, pad_left

    rows = [(number, row) for number, episode in enumerate(episodes) for row in episode["rows"]]
    packed = Packed([row["prompt"] for _, row in rows], [number for number, _ in rows], pad)
    completions = [row["completion"] for _, row in rows]
    ids, mask = pad_left([rest + completion for rest, completion in zip(packed.rests_B, completions, strict=True)], pad)
    labels = torch.full_like(ids, -100)
    for b, completion in enumerate(completions):
        labels[b, -len(completion) :] = torch.tensor(completion)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels, **packed.fields}


def run_sft(config: Config, rows: Path, out: Path) -> dict[str, Any]:
    """Train a LoRA on teacher rows; write it to `out/adapter`, and the model with it merged in to `out/merged`.

    Goes on from the last checkpoint in `out` when that was made with the same settings, rows and model.
    """
    from functools import partial

    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    from train.callbacks import MetricsCallback, quiet
    from train.resume import resume_from, training_inputs
    from train.shared_prefix import accept_prefixes

    settings = config.sft
    tokenizer = AutoTokenizer.from_pretrained(config.model.path)
    episodes, dropped = load_episodes(tokenizer, rows, settings.max_length)
    model = load_model(config.model.path, config.model)
    accept_prefixes(model)
    checkpoint = resume_from(out, {**training_inputs(config, config.model.path, rows), "sft": plain(settings)})
    with Tracker(out, config.tracking, config.to_dict()) as tracker:
        trainer = SFTTrainer(
            model=model,
            args=SFTConfig(
                output_dir=str(out / "checkpoints"),
                learning_rate=settings.learning_rate,
                num_train_epochs=settings.epochs,
                per_device_train_batch_size=settings.micro_batch_size,
                gradient_accumulation_steps=settings.batch_size // settings.micro_batch_size,
                lr_scheduler_type="cosine",
                warmup_steps=settings.warmup_share,
                max_grad_norm=1.0,
                gradient_checkpointing=settings.gradient_checkpointing,
                bf16=config.model.dtype == "bfloat16",
                remove_unused_columns=False,
                dataset_kwargs={"skip_prepare_dataset": True},
                max_length=None,
                logging_steps=settings.log_steps,
                save_steps=settings.save_steps,
                save_total_limit=2,
                disable_tqdm=True,
                dataloader_pin_memory=torch.cuda.is_available(),
                report_to=[],
                seed=config.seed,
            ),
            train_dataset=Dataset.from_list([{"rows": episode} for episode in episodes]),
            data_collator=partial(collate, pad=tokenizer.pad_token_id),
            processing_class=tokenizer,
            peft_config=lora_config(config.lora, dropout=config.lora.dropout),
            callbacks=[MetricsCallback(tracker, "sft")],
        )
        quiet(trainer)
        result = trainer.train(resume_from_checkpoint=checkpoint)
        save_adapter(trainer.model, out / "adapter")
    merge(config.model.path, out / "adapter", out / "merged", config.model)
    return {
        "rows": sum(map(len, episodes)),
        "episodes": len(episodes),
        "dropped_rows": dropped,
        "steps": trainer.state.global_step,
        "loss": result.training_loss,
    }
