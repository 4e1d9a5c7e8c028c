"""TRL's GRPOTrainer on batches of groups of stateless steps.

One trainer step is one batch of groups: any number of rows, in any number of micro-batches, one optimiser
step, one advance of the learning rate. TRL's clipped loss, gradient clipping, checkpoints and callbacks are
used as they are. Three departures, each forced by what TRL assumes:

- A batch comes from `collect`, not from a dataset: TRL fixes the number of rows in advance and drops the rest.
- None of TRL's losses weighs episodes. With loss_type "grpo" a micro-batch of n rows is worth the mean of their
  token means; the clipped objective is linear in a positive scale of the advantage, so the advantage
  A * weight * n makes the sum over micro-batches exactly sum(weight * token mean), one vote per episode.
- The old log-probabilities are the engine's own. The probability ratio then corrects for the difference between
  engine and trainer too; clipping, and `delta` where clipping does not bound it, truncate it.

The KL to the reference (adapter off) is measured on the first micro-batches of every step, and is part of the
loss only with kl_weight > 0, where it is weighted like everything else.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from env.errors import NavigatorError
from train.samples import MicroBatch, Sample, micro_batches
from train.settings import GrpoSettings
from train.shared_prefix import Packed, accept_prefixes, pad_left

_MEASURED_ROWS = 32
"""Rows whose KL is measured at each step, at least, when it is not part of the loss."""


class TrainingFailed(NavigatorError):
    """Training cannot go on; the last checkpoint is kept."""

    exit_code = 4


def trainer_config(settings: GrpoSettings, out: Path, *, seed: int, bfloat16: bool) -> GRPOConfig:
    """TRL's arguments; its own batch sizes are placeholders."""
    return GRPOConfig(
        output_dir=str(out / "checkpoints"),
        max_steps=settings.steps,
        per_device_train_batch_size=2,
        num_generations=2,
        gradient_accumulation_steps=1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup_steps,
        max_grad_norm=settings.max_grad_norm,
        loss_type="grpo",
        beta=0.0,
        epsilon=settings.clip_low,
        epsilon_high=settings.clip_high,
        delta=settings.ratio_cap,
        scale_rewards="none",
        max_completion_length=settings.max_tokens,
        gradient_checkpointing=settings.gradient_checkpointing,
        bf16=bfloat16,
        logging_strategy="no",
        save_steps=settings.save_steps,
        save_total_limit=2,
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to=[],
        seed=seed,
    )


def _no_reward(completions: list[Any], **kwargs: Any) -> list[float]:
    raise AssertionError("rewards come with the episodes")


class EpisodeGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """A GRPOTrainer whose step is one batch of weighted rows from `collect(step)`."""

    def __init__(
        self,
        *,
        model: Any,
        tokenizer: Any,
        args: GRPOConfig,
        settings: GrpoSettings,
        collect: Callable[[int], Sequence[Sample]],
        callbacks: list[Any] | None = None,
    ) -> None:
        self.settings = settings
        self.collect = collect
        self.measured: dict[str, float] = {}
        """Numbers of the last step."""
        self.current_gradient_accumulation_steps = 1
        self._checked = False
        self._logps_BT: torch.Tensor | None = None
        self._prefixes: dict[str, torch.Tensor] = {}
        """Arguments of the model for the micro-batch at hand; empty where nothing is shared."""
        accept_prefixes(model.get_base_model())
        placeholder = Dataset.from_dict({"prompt": ["", ""]})
        super().__init__(
            model=model,
            reward_funcs=_no_reward,
            args=args,
            train_dataset=placeholder,
            processing_class=tokenizer,
            callbacks=callbacks,
        )

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        return generation_batch

    def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(partial(model, **self._prefixes), *args, **kwargs)
        self._logps_BT = result[0]
        return result

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Collect a batch and accumulate its gradient; the loss of the batch, detached."""
        samples = self.collect(self.state.global_step)
        model.train()
        batches = micro_batches(samples, self.settings.micro_batch_tokens, shared=self.settings.shared_prefix)
        total = torch.zeros((), device=self.accelerator.device)
        sums = _Sums()
        for micro_batch in batches:
            batch = self._tensors(micro_batch)
            loss = self._compute_loss(model, batch)
            logps_BT = self._logps_BT
            assert logps_BT is not None
            reference_BT = None
            if self.settings.kl_weight > 0 or sums.kl_rows < _MEASURED_ROWS:
                reference_BT = self._reference(model, batch)
            if self.settings.kl_weight > 0:
                assert reference_BT is not None
                loss = loss + self.settings.kl_weight * (_token_mean(_kl(logps_BT, reference_BT), batch) * batch["weights"]).sum()
            self.accelerator.backward(loss)
            total += loss.detach()
            sums.add(logps_BT.detach(), reference_BT, batch, self.settings)
        if not math.isfinite(total.item()):
            raise TrainingFailed(f"the loss of step {self.state.global_step} is {total.item()}; lower grpo.learning_rate and run again")
        self.measured = sums.means() | {"loss": total.item(), "grad_norm": self._gradient_norm(), "rows": len(samples)}
        self.measured["token_ratio"] = sum(s.tokens for s in samples) / max(1, sum(batch.tokens for batch in batches))
        if samples and not self._checked:
            self._check()
        return total

    def _check(self) -> None:
        """At start-up the trainer and the engine must agree, and a fresh adapter must change nothing."""
        self._checked = True
        off = self.measured["ratio_deviation"]
        if off > self.settings.ratio_tolerance:
            raise TrainingFailed(
                f"trainer and engine disagree: the mean |probability ratio - 1| of the first batch is {off:.4f}, "
                f"grpo.ratio_tolerance allows {self.settings.ratio_tolerance}; are both on the same weights and dtype?"
            )
        kl = self.measured["kl"]
        if self.state.global_step == 0 and abs(kl) > self.settings.kl_tolerance:
            raise TrainingFailed(
                f"the KL to the SFT policy is {kl:.2e} before the first update, grpo.kl_tolerance allows {self.settings.kl_tolerance}; "
                "the adapter must be fresh and the SFT adapter merged"
            )

    def _reference(self, model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Log-probabilities of the SFT policy: the same model, adapter off. Shape (B, T)."""
        with self.accelerator.unwrap_model(model).disable_adapter():
            return self._forward(model, batch)

    def logprobs(self, micro_batch: MicroBatch) -> torch.Tensor:
        """Of the completions by the current policy, padding last. Shape (B, T)."""
        return self._forward(self.model, self._tensors(micro_batch))

    def _forward(self, model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        ids_BL = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask_BL = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        with torch.no_grad():
            logps_BT, _, _ = self._get_per_token_logps_and_entropies(model, ids_BL, mask_BL, batch["completion_ids"].size(1))
        return logps_BT

    def _gradient_norm(self) -> float:
        """Before clipping."""
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        return float(torch.nn.utils.get_total_norm(grads)) if grads else 0.0

    def _tensors(self, micro_batch: MicroBatch) -> dict[str, torch.Tensor]:
        """Padded tensors of a micro-batch: prompts on the left, completions on the right; shared prefixes are kept apart."""
        rows = micro_batch.rows
        pad, device = self._tokenizer.pad_token_id, self.accelerator.device
        prompts_B: Sequence[Sequence[int]] = [r.prompt_ids for r in rows]
        self._prefixes = {}
        if micro_batch.shared:
            packed = Packed(prompts_B, [r.instance_id for r in rows], pad)
            prompts_B = packed.rests_B
            self._prefixes = {name: tensor.to(device) for name, tensor in packed.fields.items()}
        prompt_ids_BP, prompt_mask_BP = pad_left(prompts_B, pad)
        width_T = max(len(r.completion_ids) for r in rows)
        right = [list(r.completion_ids) + [pad] * (width_T - len(r.completion_ids)) for r in rows]
        logprobs = [list(r.logprobs) + [0.0] * (width_T - len(r.logprobs)) for r in rows]
        return {
            "prompt_ids": prompt_ids_BP.to(device),
            "prompt_mask": prompt_mask_BP.to(device),
            "completion_ids": torch.tensor(right, device=device),
            "completion_mask": torch.tensor(
                [[1] * len(r.completion_ids) + [0] * (width_T - len(r.completion_ids)) for r in rows], device=device
            ),
            "old_per_token_logps": torch.tensor(logprobs, device=device),
            "advantages": torch.tensor([r.advantage * r.weight * len(rows) for r in rows], device=device),
            "weights": torch.tensor([r.weight for r in rows], device=device),
        }


def _kl(logps_BT: torch.Tensor, reference_BT: torch.Tensor) -> torch.Tensor:
    """Schulman's k3 estimate of KL(policy || reference) per token."""
    gap = reference_BT - logps_BT
    return torch.exp(gap) - gap - 1


def _token_mean(values_BT: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    mask_BT = batch["completion_mask"]
    return (values_BT * mask_BT).sum(-1) / mask_BT.sum(-1).clamp(min=1)


class _Sums:
    """Token means over the micro-batches of a step."""

    def __init__(self) -> None:
        self.tokens = 0
        self.ratio = self.deviation = self.touched = 0.0
        self.kl = 0.0
        self.kl_rows = self.kl_tokens = 0

    def add(self, logps_BT: torch.Tensor, reference_BT: torch.Tensor | None, batch: dict[str, torch.Tensor], s: GrpoSettings) -> None:
        """Count one micro-batch."""
        mask_BT = batch["completion_mask"].bool()
        ratio = torch.exp(logps_BT - batch["old_per_token_logps"])[mask_BT]
        self.tokens += ratio.numel()
        self.ratio += ratio.sum().item()
        self.deviation += (ratio - 1).abs().sum().item()
        self.touched += ((ratio < 1 - s.clip_low) | (ratio > 1 + s.clip_high)).sum().item()
        if reference_BT is not None:
            self.kl += _kl(logps_BT, reference_BT)[mask_BT].sum().item()
            self.kl_tokens += ratio.numel()
            self.kl_rows += len(logps_BT)

    def means(self) -> dict[str, float]:
        """Names as they are tracked."""
        n = max(1, self.tokens)
        return {
            "kl": self.kl / max(1, self.kl_tokens),
            "ratio": self.ratio / n,
            "ratio_deviation": self.deviation / n,
            "ratio_touched": self.touched / n,
        }
