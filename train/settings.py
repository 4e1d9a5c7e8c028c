"""Settings of the training stages: plain values, no heavy imports."""

from dataclasses import dataclass
from typing import Literal

from env.errors import SettingError


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraSettings:
    """The adapter of SFT, and a fresh one of the same shape for GRPO."""

    r: int = 32
    alpha: int = 64
    dropout: float = 0.05
    """In SFT only: GRPO's policy must be the one that was sampled from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SftSettings:
    """Supervised training on single steps of the oracle teacher."""

    learning_rate: float = 1e-5
    epochs: float = 2.0
    batch_size: int = 12
    """Episodes of one optimiser step; an episode is about five rows."""
    micro_batch_size: int = 2
    """Episodes of one forward pass."""
    warmup_share: float = 0.03
    max_length: int = 4096
    """A longer row is dropped and counted, never cut."""
    gradient_checkpointing: bool = False
    log_steps: int = 10
    save_steps: int = 200
    """Steps between the checkpoints that a stopped run goes on from."""

    def __post_init__(self) -> None:
        if self.batch_size % self.micro_batch_size:
            raise SettingError(f"sft.batch_size {self.batch_size} is no multiple of sft.micro_batch_size {self.micro_batch_size}")


@dataclass(frozen=True, kw_only=True, slots=True)
class GrpoSettings:
    """Group-relative policy optimisation over stateless steps."""

    learning_rate: float = 1e-5
    """Of a zero-initialised LoRA: at a full fine-tune's 1e-6 the KL stays 0."""
    steps: int = 60
    """Optimiser steps; each is one batch of groups."""
    groups: int = 16
    """Instances of a batch."""
    group_size: int = 8
    """Episodes of an instance."""
    advantage: Literal["episode", "episode_no_std", "rloo"] = "episode"
    """Name in train/advantages.py."""
    max_tokens: int = 256
    """Bound on one completion."""
    temperature: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    """The probability ratio to the sampling engine is clipped to [1 - low, 1 + high]."""
    ratio_cap: float = 2.0
    """Truncation of the ratio where clipping does not bound it (negative advantages)."""
    kl_weight: float = 0.0
    """Weight of the KL to the SFT policy in the loss; it is measured in any case."""
    max_grad_norm: float = 1.0
    warmup_steps: int = 2
    schedule: Literal["constant_with_warmup", "linear", "cosine"] = "constant_with_warmup"
    """Of the learning rate, by transformers' name; linear and cosine fall to 0 at the last of `steps`."""
    micro_batch_tokens: int = 16_384
    """Bound on the tokens of one forward pass, padding included."""
    shared_prefix: bool = True
    """Compute what the rows of an instance begin with once, where that pays."""
    ratio_tolerance: float = 0.01
    """Largest mean |trainer/engine probability ratio - 1| at start-up."""
    kl_tolerance: float = 1e-5
    """Largest KL to the SFT policy before the first update."""
    gradient_checkpointing: bool = False
    save_steps: int = 5
    """Steps between the checkpoints that a stopped run goes on from."""

    def __post_init__(self) -> None:
        if self.temperature != 1.0:
            raise SettingError(f"grpo.temperature is {self.temperature}: only samples at temperature 1 have the policy's log-probabilities")
        if self.group_size < 2:
            raise SettingError(f"grpo.group_size is {self.group_size}: a group of one has no baseline, use at least 2")
        if not 0 < self.learning_rate < 1:
            raise SettingError(f"grpo.learning_rate is {self.learning_rate}, expected a number between 0 and 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainSettings:
    """The base model that the laptop profile is shipped with, and how it is trained from scratch."""

    start: str = ""
    """Model folder to go on from instead of a random initialisation."""
    hidden_size: int = 128
    intermediate_size: int = 384
    layers: int = 4
    heads: int = 4
    rope_theta: float = 1e5
    max_positions: int = 1024
    attention: str = "sdpa"
    wire_copying: bool = True
    """Begin with copying heads; see train/wiring.py."""
    tokens: int = 44_000_000
    """Token budget, padding included."""
    batch_tokens: int = 2048
    """Most tokens of a batch in one process, padding included."""
    long_share: float = 0.35
    """Part of the examples that are as long as real prompts."""
    short_first: int = 30_000
    """Examples of each process that are all short: copying and look-up are learnt there first."""
    learning_rate: float = 2e-3
    warmup_steps: int = 200
    decay_share: float = 0.4
    """Last part of the budget over which the rate falls linearly."""
    processes: int = 2
    """Data-parallel processes of one thread each: faster than one process of two threads at this size."""
    log_steps: int = 100
    save_steps: int = 500
