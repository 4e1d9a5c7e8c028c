"""SFT on single steps: TRL's SFTTrainer on rows that are tokenised here.

Departs from handing TRL prompt/completion text: it would tokenise both together and cut where the prefix
differs. Rows are (prompt ids of the chat template, completion ids, end of turn) with loss on the completion.
"""

from pathlib import Path
from typing import Any

from env.errors import InputError
from env.navigator.instance import read_rows
from train.adapters import load_model, lora_config, save_adapter
from train.config import Config
from train.tracking import Tracker


def tokenise(tokenizer: Any, row: dict[str, Any], where: str) -> dict[str, list[int]]:
    """Input ids and labels of one row. InputError for a row without anything to learn."""
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list) or not isinstance(row.get("completion"), str):
        raise InputError(f"{where}: expected an object with a list 'messages' and a text 'completion'")
    if not row["completion"].strip():
        raise InputError(f"{where}: 'completion' is empty: a row without a target teaches nothing")
    prompt = tokenizer.apply_chat_template(row["messages"], add_generation_prompt=True, return_dict=False)
    completion = [*tokenizer.encode(row["completion"], add_special_tokens=False), tokenizer.eos_token_id]
    return {"input_ids": [*prompt, *completion], "labels": [-100] * len(prompt) + completion}


def load_rows(tokenizer: Any, path: Path, max_length: int) -> tuple[list[dict[str, list[int]]], int]:
    """(tokenised rows, how many were longer than `max_length` and dropped). InputError when none is left."""
    rows = [tokenise(tokenizer, row, where) for where, row in read_rows(path)]
    kept = [row for row in rows if len(row["input_ids"]) <= max_length]
    if not kept:
        raise InputError(f"{path}: none of its {len(rows)} rows fits sft.max_length {max_length}")
    return kept, len(rows) - len(kept)


def run_sft(config: Config, rows: Path, out: Path) -> dict[str, Any]:
    """Train a LoRA adapter on teacher rows and write it to `out/adapter`; goes on from the last checkpoint in `out`."""
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    from train.callbacks import MetricsCallback, last_checkpoint, quiet

    settings = config.sft
    tokenizer = AutoTokenizer.from_pretrained(config.model.path)
    data, dropped = load_rows(tokenizer, rows, settings.max_length)
    with Tracker(out, config.tracking, config.to_dict()) as tracker:
        trainer = SFTTrainer(
            model=load_model(config.model.path, config.model),
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
                train_sampling_strategy="group_by_length",
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
            train_dataset=Dataset.from_list(data),
            processing_class=tokenizer,
            peft_config=lora_config(config.lora, dropout=config.lora.dropout),
            callbacks=[MetricsCallback(tracker, "sft")],
        )
        quiet(trainer)
        result = trainer.train(resume_from_checkpoint=last_checkpoint(out / "checkpoints"))
        save_adapter(trainer.model, out / "adapter")
    return {"rows": len(data), "dropped_rows": dropped, "steps": trainer.state.global_step, "loss": result.training_loss}
