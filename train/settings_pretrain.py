"""Settings of pretraining."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainSettings:
    """The base model that the laptop profile is shipped with, and how it is trained from scratch."""

    hidden_size: int = 128
    intermediate_size: int = 384
    layers: int = 4
    heads: int = 4
    rope_theta: float = 1e5
    max_positions: int = 1024
    attention: str = "sdpa"
    tokens: int = 32_000_000
    """Token budget, padding included."""
    batch_tokens: int = 2048
    """Most tokens of a batch in one process, padding included."""
    long_share: float = 0.35
    """Part of the examples that are as long as real prompts."""
    short_first: int = 12_000
    """Examples of each process that are all short: copying is learnt there first."""
    learning_rate: float = 2e-3
    warmup_steps: int = 200
    decay_share: float = 0.4
    """Last part of the budget over which the rate falls linearly."""
    processes: int = 2
    """Data-parallel processes of one thread each: faster than one process of two threads at this size."""
    log_steps: int = 100
    save_steps: int = 500
