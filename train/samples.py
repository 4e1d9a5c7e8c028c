"""From groups of episodes to weighted training rows, and from rows to micro-batches.

One episode is several rows (its steps) and has ONE vote: a row weighs 1 / (episodes x steps of its episode).
The weights of a batch sum to 1 whatever the step counts are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rollout.records import Group, Trajectory
from train.advantages import ADVANTAGES, has_spread
from train.shared_prefix import common_prefix


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One step of one episode."""

    prompt_ids: Sequence[int]
    completion_ids: Sequence[int]
    logprobs: Sequence[float]
    """Of the completion, as the engine sampled it."""
    advantage: float
    """Of the whole episode."""
    weight: float
    """1 / (episodes in the batch x steps of the episode)."""
    instance_id: str
    episode: int

    @property
    def tokens(self) -> int:
        """Prompt and completion."""
        return len(self.prompt_ids) + len(self.completion_ids)


def usable(groups: Sequence[Group]) -> list[Group]:
    """Groups whose returns differ, failed episodes left out."""
    kept = []
    for group in groups:
        sound = tuple(t for t in group.trajectories if t.error is None)
        if len(sound) > 1 and has_spread([t.reward for t in sound]):
            kept.append(Group(instance_id=group.instance_id, trajectories=sound))
    return kept


def make_samples(groups: Sequence[Group], advantage: str) -> list[Sample]:
    """Rows of a batch of usable groups."""
    episodes = sum(len(group.trajectories) for group in groups)
    samples: list[Sample] = []
    for group in groups:
        advantages_G = ADVANTAGES[advantage]([t.reward for t in group.trajectories])
        for number, (trajectory, value) in enumerate(zip(group.trajectories, advantages_G, strict=True)):
            samples += _rows(trajectory, number, value, episodes)
    return samples


def _rows(trajectory: Trajectory, number: int, advantage: float, episodes: int) -> Iterator[Sample]:
    for step in trajectory.steps:
        yield Sample(
            prompt_ids=step.prompt_ids,
            completion_ids=step.completion_ids,
            logprobs=step.logprobs,
            advantage=advantage,
            weight=1 / (episodes * len(trajectory.steps)),
            instance_id=trajectory.instance_id,
            episode=number,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroBatch:
    """Rows of one forward pass."""

    rows: Sequence[Sample]
    shared: bool
    """Whether the prefix of each instance is computed once for its rows; see train/shared_prefix.py."""
    tokens: int
    """Tokens that are computed, padding included."""


def micro_batches(samples: Sequence[Sample], most_tokens: int, *, shared: bool = True) -> list[MicroBatch]:
    """Micro-batches of at most `most_tokens` computed tokens; what is larger by itself stands alone.

    With `shared`, prefixes are shared where that computes fewer tokens than padded rows of like length.
    """
    plain = _of_like_length(samples, most_tokens)
    if not shared:
        return plain
    sharing = _by_instance(samples, most_tokens)
    return min(sharing, plain, key=lambda batches: sum(batch.tokens for batch in batches))


def _of_like_length(samples: Sequence[Sample], most_tokens: int) -> list[MicroBatch]:
    batches: list[list[Sample]] = []
    for sample in sorted(samples, key=lambda s: (s.tokens, s.instance_id, s.episode)):
        # Rows come in ascending length: with this one the batch is as wide as this one.
        if batches and (len(batches[-1]) + 1) * sample.tokens <= most_tokens:
            batches[-1].append(sample)
        else:
            batches.append([sample])
    return [MicroBatch(rows=rows, shared=False, tokens=len(rows) * rows[-1].tokens) for rows in batches]


def _by_instance(samples: Sequence[Sample], most_tokens: int) -> list[MicroBatch]:
    members: dict[str, list[Sample]] = {}
    for sample in samples:
        members.setdefault(sample.instance_id, []).append(sample)
    batches: list[MicroBatch] = []
    for rows in members.values():
        prefix = common_prefix([row.prompt_ids for row in rows])
        parts: list[list[Sample]] = []
        cost = 0
        for row in sorted(rows, key=lambda s: (s.tokens, s.episode)):
            own = row.tokens - prefix
            if parts and cost + own <= most_tokens:
                parts[-1].append(row)
                cost += own
            else:
                parts.append([row])
                cost = prefix + own
        batches += [MicroBatch(rows=part, shared=True, tokens=prefix + sum(row.tokens - prefix for row in part)) for part in parts]
    return batches
