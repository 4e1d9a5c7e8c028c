"""Runs many episodes at once through one engine, each advancing as soon as its own step is done.

Departs from the usual rollout loop in having no rounds: an episode never waits for another. Older episodes
have priority, groups are started one after the other so that their shared prefix is warm, and at most
`in_flight` episodes are open. An episode whose request fails for good is recorded as data and the batch goes on; a
dead engine or a bug of the environment ends the run.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from env.errors import NavigatorError
from env.protocol import Episode
from rollout.engine import Adapter, Completion, Engine, FinishReason, Request, Sampling
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
    own_seconds: float
    """In the environment and the tokenizer, while the engine may be working."""
    mean_in_flight: float
    """Requests that the engine had, averaged over time."""
    idle_seconds: float
    """The engine had none."""

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
    clock = _Clock()
    policy = _Policy(engine=engine, sampling=sampling, seed=seed, adapter=adapter, clock=clock)
    finished: dict[int, Trajectory] = {}
    slowest = 0.0
    waiting = iter(enumerate(tasks))

    async def worker() -> None:
        nonlocal slowest
        for order, task in waiting:
            begun = time.monotonic()
            trajectory = await policy.run(task, order)
            slowest = max(slowest, time.monotonic() - begun)
            finished[order] = trajectory
            on_finished(trajectory)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(in_flight, len(tasks))):
                group.create_task(worker())
    except BaseExceptionGroup as failures:
        # A dead engine fails every episode in the same way: the first says what happened.
        raise failures.exceptions[0] from None
    trajectories = [finished[order] for order in range(len(tasks))]
    return trajectories, _stats(trajectories, time.monotonic() - started, slowest, clock)


class _Clock:
    """Where the time of a batch goes, seen from the event loop."""

    def __init__(self) -> None:
        self.own = self.busy = self.waited = 0.0
        self._requests, self._since = 0, 0.0

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Around work of the environment and the tokenizer."""
        begun = time.monotonic()
        yield
        self.own += time.monotonic() - begun

    @contextmanager
    def request(self) -> Iterator[None]:
        """Around a request to the engine."""
        begun = time.monotonic()
        if self._requests == 0:
            self._since = begun
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            now = time.monotonic()
            self.waited += now - begun
            if self._requests == 0:
                self.busy += now - self._since


def _stats(trajectories: Sequence[Trajectory], seconds: float, slowest: float, clock: _Clock) -> RolloutStats:
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
        own_seconds=clock.own,
        mean_in_flight=clock.waited / max(1e-9, seconds),
        idle_seconds=max(0.0, seconds - clock.busy),
    )


class _RequestFailed(Exception):
    """A request failed as often as it may; its episode ends as data."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Policy:
    """What answers the episodes of one batch."""

    engine: Engine
    sampling: Sampling
    seed: int
    adapter: Adapter | None
    clock: _Clock

    async def run(self, task: EpisodeTask, order: int) -> Trajectory:
        """One episode to its end, or to a request that failed for good."""
        own = derive(self.seed, task.instance_id, task.episode)
        with self.clock.ours():
            episode = task.make()
        steps: list[Step] = []
        error: str | None = None
        try:
            while episode.ending is None:
                index = len(steps)
                with self.clock.ours():
                    prompt_ids = self.engine.encode(episode.observe())
                request = Request(
                    request_id=f"{task.instance_id}/{task.episode}/{index}/{own}",
                    prompt_ids=prompt_ids,
                    sampling=self.sampling,
                    seed=derive(own, index),
                    priority=order,
                    adapter=self.adapter,
                )
                with self.clock.request():
                    completion = await self._complete(request)
                with self.clock.ours():
                    steps.append(self._advance(episode, prompt_ids, completion))
        except _RequestFailed as failure:
            error = str(failure)
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

    async def _complete(self, request: Request) -> Completion:
        """The boundary at which a failure becomes data, after _TRIES; a dead engine and a user's mistake pass it."""
        for attempt in range(_TRIES):
            try:
                return await self.engine.generate(replace(request, request_id=f"{request.request_id}/{attempt}"))
            except NavigatorError:
                raise
            except Exception as error:
                failure = error
        raise _RequestFailed(f"{type(failure).__name__}: {failure}") from failure

    def _advance(self, episode: Episode, prompt_ids: Sequence[int], completion: Completion) -> Step:
        """Let the episode act on a completion."""
        response = self.engine.decode(completion.token_ids)
        return Step(
            response=response,
            result=episode.step(response, truncated=completion.finish_reason is FinishReason.LENGTH),
            prompt_ids=prompt_ids,
            completion_ids=completion.token_ids,
            logprobs=completion.logprobs,
            finish_reason=completion.finish_reason,
            version=self.adapter.version if self.adapter else 0,
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
