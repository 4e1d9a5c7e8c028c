"""Runs many episodes at once through one engine, each advancing as soon as its own step is done.

Departs from the usual rollout loop in having no rounds: an episode never waits for another. Older episodes
have priority, groups are started one after the other so that their shared prefix is warm, and at most
`in_flight` episodes are open. One bad episode is recorded as data; a dead engine ends the run.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from env.errors import EngineDied
from env.protocol import Episode
from rollout.engine import Adapter, Engine, FinishReason, Request, Sampling
from rollout.records import Step, Trajectory
from rollout.seeds import derive

_TRIES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeTask:
    """One episode to run."""

    instance_id: str
    episode: int
    """Number within its group."""
    make: Callable[[], Episode]


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutStats:
    """What a batch of episodes cost."""

    seconds: float
    episodes: int
    failed: int
    """Episodes that ended by an error of ours or of the engine."""
    steps: int
    prompt_tokens: int
    cached_tokens: int
    """Prompt tokens that the prefix cache served."""
    completion_tokens: int
    slowest_seconds: float
    """Of one episode."""

    @property
    def cache_hit(self) -> float:
        """Share of prompt tokens from the cache."""
        return self.cached_tokens / max(1, self.prompt_tokens)

    @property
    def tokens_per_second(self) -> float:
        """Prompt and completion tokens."""
        return (self.prompt_tokens + self.completion_tokens) / max(1e-9, self.seconds)


async def run_episodes(
    engine: Engine,
    tasks: Sequence[EpisodeTask],
    *,
    sampling: Sampling,
    seed: int,
    in_flight: int,
    adapter: Adapter | None = None,
    on_finished: Callable[[Trajectory], None] = lambda trajectory: None,
) -> tuple[list[Trajectory], RolloutStats]:
    """Trajectories in the order of `tasks`, and what they cost.

    `on_finished` is called for each as it ends, so that nothing finished is lost when EngineDied is raised.
    """
    started = time.monotonic()
    finished: dict[int, Trajectory] = {}
    slowest = 0.0
    waiting = iter(enumerate(tasks))

    async def worker() -> None:
        nonlocal slowest
        for order, task in waiting:
            begun = time.monotonic()
            trajectory = await _run_one(engine, task, order, sampling, seed, adapter)
            slowest = max(slowest, time.monotonic() - begun)
            finished[order] = trajectory
            on_finished(trajectory)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(in_flight, len(tasks))):
            group.create_task(worker())
    trajectories = [finished[order] for order in range(len(tasks))]
    return trajectories, _stats(trajectories, time.monotonic() - started, slowest)


def _stats(trajectories: Sequence[Trajectory], seconds: float, slowest: float) -> RolloutStats:
    steps = [step for trajectory in trajectories for step in trajectory.steps]
    return RolloutStats(
        seconds=seconds,
        episodes=len(trajectories),
        failed=sum(trajectory.error is not None for trajectory in trajectories),
        steps=len(steps),
        prompt_tokens=sum(len(step.prompt_ids) for step in steps),
        cached_tokens=sum(step.cached_tokens for step in steps),
        completion_tokens=sum(len(step.completion_ids) for step in steps),
        slowest_seconds=slowest,
    )


async def _run_one(engine: Engine, task: EpisodeTask, order: int, sampling: Sampling, seed: int, adapter: Adapter | None) -> Trajectory:
    """One episode to its end. This is the boundary at which a failure becomes data; a dead engine passes it."""
    own = derive(seed, task.instance_id, task.episode)
    episode = task.make()
    steps: list[Step] = []
    error: str | None = None
    try:
        while episode.ending is None:
            steps.append(await _step(engine, episode, task, order, len(steps), sampling, own, adapter))
    except EngineDied:
        raise
    except Exception as failure:  # noqa: BLE001
        error = f"{type(failure).__name__}: {failure}"
    return Trajectory(
        instance_id=task.instance_id,
        seed=own,
        reward=episode.reward if episode.reward is not None else 0.0,
        ending=episode.ending.value if episode.ending else None,
        steps=tuple(steps),
        info=episode.info(),
        metrics=episode.metrics(),
        error=error,
    )


async def _step(
    engine: Engine, episode: Episode, task: EpisodeTask, order: int, index: int, sampling: Sampling, seed: int, adapter: Adapter | None
) -> Step:
    """Prompt, completion, action."""
    prompt_ids = engine.encode(episode.observe())
    request = Request(
        request_id=f"{task.instance_id}/{task.episode}/{index}/{seed}",
        prompt_ids=prompt_ids,
        sampling=sampling,
        seed=derive(seed, index),
        priority=order,
        adapter=adapter,
    )
    for attempt in range(_TRIES):
        try:
            completion = await engine.generate(replace(request, request_id=f"{request.request_id}/{attempt}"))
            break
        except EngineDied:
            raise
        except Exception:
            if attempt == _TRIES - 1:
                raise
    response = engine.decode(completion.token_ids)
    result = episode.step(response, truncated=completion.finish_reason is FinishReason.LENGTH)
    return Step(
        response=response,
        result=result,
        prompt_ids=prompt_ids,
        completion_ids=completion.token_ids,
        logprobs=completion.logprobs,
        finish_reason=completion.finish_reason,
        version=adapter.version if adapter else 0,
        cached_tokens=completion.cached_tokens,
    )


def play(episode: Episode, policy: Callable[[Episode], str], seed: int = 0) -> Trajectory:
    """One episode of a reference policy that looks at the episode itself; no engine, no token ids."""
    steps: list[Step] = []
    while episode.ending is None:
        response = policy(episode)
        steps.append(Step(response=response, result=episode.step(response)))
    assert episode.reward is not None
    return Trajectory(
        instance_id=episode.instance_id,
        seed=seed,
        reward=episode.reward,
        ending=episode.ending.value,
        steps=tuple(steps),
        info=episode.info(),
        metrics=episode.metrics(),
    )
