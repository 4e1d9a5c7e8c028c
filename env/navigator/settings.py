"""Every number of the task, and the two profiles that people run.

`v1` is the public task. `laptop` is the same task with every rule kept and every size shrunk, so that a
tiny model on two cores can learn it.
"""

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from env.errors import SettingError


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """A fixed list of instances."""

    size: int
    """Instances in it; more can be drawn with --start and --n."""
    hops: tuple[int, ...]
    """Chain lengths, in turn by index."""
    doc_tokens: tuple[int, ...]
    """Document sizes in tokens, in turn by index."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What the episode enforces; recorded in every instance under `env`."""

    ceiling: int = 600
    """Most tokens that may be held."""
    summary_cap: int = 120
    """A longer summary is cut to this many tokens before it is counted."""
    budget_base: int = 6
    """Steps allowed = budget_base + budget_per_hop * hops."""
    budget_per_hop: int = 4
    assumed_summary: int = 32
    """Tokens a summary is assumed to cost in min_steps."""
    abstain_reward: float = 0.0
    """Reward of `ANSWER unknown`; 0 is off, the published option is 0.1."""
    brief: bool = False
    """Short rules text in the prompt, for models trained on the task from scratch."""
    bytes_per_token: int = 0
    """A summary costs at least one token for so many bytes of it, or a chunk written as one word would cost one token.
    0 is off: a public file records no such rule and is played without."""
    tokens: str = ""
    """Model folder or hub name whose tokenizer counts; empty is the model-free counter. See recount.py."""

    def budget(self, n_hops: int) -> int:
        """Steps allowed for a question of `n_hops`."""
        return self.budget_base + self.budget_per_hop * n_hops


RULE_TYPES: dict[str, Any] = {field.name: field.type for field in fields(Rules)}
"""Type of each rule, for files that record them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How documents are made; everything follows from these, the split and the index."""

    profile: str
    """Part of every seed: two profiles never share an instance."""
    splits: dict[str, Split]
    rules: Rules
    chunk_tokens: tuple[int, int]
    """Bounds of the uniform distribution that every chunk's length is drawn from, noise included."""
    entries: tuple[int, int]
    """Bounds of the number of entries in a register chunk, twins included."""
    twins: int
    """Near-miss twins in every register chunk."""
    noise_share: float
    """Part of the chunks that are minutes, logs and bulletins."""
    evidence_distance: int
    """Least distance in tokens between two evidence entries."""
    superseded_link: float
    """Probability that a link shows an old value too."""
    superseded_value: float
    """Probability that an attribute shows an old value too."""
    names: int
    """Words taken from each name list (first and second words)."""
    short_values: bool
    """Values of three or four digits, where v1 has up to seven."""


_V1 = Settings(
    profile="v1",
    splits={
        "train": Split(size=2000, hops=(2, 3), doc_tokens=(32_000,)),
        "dev": Split(size=300, hops=(2, 3), doc_tokens=(32_000,)),
        "id_test": Split(size=300, hops=(2, 3), doc_tokens=(32_000,)),
        "ood_test": Split(size=300, hops=(4, 5), doc_tokens=(32_000,)),
        "scale_test": Split(size=150, hops=(3,), doc_tokens=(32_000, 64_000, 128_000)),
    },
    rules=Rules(bytes_per_token=8),
    chunk_tokens=(320, 480),
    entries=(4, 7),
    twins=1,
    noise_share=0.3,
    evidence_distance=1200,
    superseded_link=0.6,
    superseded_value=0.3,
    names=48,
    short_values=False,
)

_LAPTOP = replace(
    _V1,
    profile="laptop",
    splits={
        "train": Split(size=4000, hops=(2, 3), doc_tokens=(2_300,)),
        "dev": Split(size=400, hops=(2, 3), doc_tokens=(2_300,)),
        "id_test": Split(size=1000, hops=(2, 3), doc_tokens=(2_300,)),
        "ood_test": Split(size=600, hops=(4, 5), doc_tokens=(2_300,)),
    },
    rules=Rules(ceiling=172, summary_cap=24, assumed_summary=8, brief=True, bytes_per_token=8),
    chunk_tokens=(124, 148),
    entries=(3, 3),
    twins=1,
    evidence_distance=60,
    names=24,
    short_values=True,
)

PROFILES = {settings.profile: settings for settings in (_V1, _LAPTOP)}


def get_profile(name: str) -> Settings:
    """Settings of a profile. SettingError for an unknown name."""
    if name not in PROFILES:
        raise SettingError(f"profile {name!r} is unknown: use one of {', '.join(PROFILES)}")
    return PROFILES[name]


def get_split(settings: Settings, name: str) -> Split:
    """A split of a profile. SettingError for an unknown name."""
    if name not in settings.splits:
        raise SettingError(f"split {name!r} is unknown in profile {settings.profile}: use one of {', '.join(settings.splits)}")
    return settings.splits[name]


def rules_from(env: dict[str, Any]) -> Rules:
    """Rules recorded in an instance's `env` field; absent ones are v1's, foreign keys are left alone."""
    return Rules(**{key: value for key, value in env.items() if key in RULE_TYPES})


def nearest(name: str, valid: list[str]) -> str:
    """`valid` name closest to a misspelt one, as a hint for messages."""
    close = get_close_matches(name, valid, n=1, cutoff=0.0)
    return close[0] if close else "none"
