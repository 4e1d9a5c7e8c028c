"""The same sampled episodes by our scheduler, in lockstep, by transformers, and as one raw call of vLLM.

What is held equal: the model, the machine, the sampling, the number of requests at once, a prefix cache that a few
other episodes have warmed. The raw call gets every prompt of the rollout at once, in the order of the episodes, and
draws as many tokens for each as the rollout drew: it waits for no answer and runs no environment.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from env import make
from env.navigator.generate import instances
from env.navigator.settings import get_profile
from env.protocol import Observation
from rollout.engine import Completion, Engine, Request, Sampling
from rollout.records import Step, Trajectory
from rollout.scheduler import EpisodeTask, RolloutStats
from train.config import Config
from train.engines import Runner, open_engine, vllm_settings

_INSTANCES = 16


class Lockstep:
    """An engine that begins a round when every open episode has asked: the barrier that our scheduler does without."""

    def __init__(self, engine: Engine, episodes: int) -> None:
        self._engine, self._open = engine, episodes
        self.gives_ids = engine.gives_ids
        self._waiting: list[asyncio.Future[None]] = []

    def encode(self, observation: Observation) -> list[int]:
        """As the engine does."""
        return self._engine.encode(observation)

    def decode(self, token_ids: Sequence[int]) -> str:
        """As the engine does."""
        return self._engine.decode(token_ids)

    async def generate(self, request: Request) -> Completion:
        """Complete a request in its round."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._begin()
        await turn
        return await self._engine.generate(request)

    def ended(self, _: Trajectory) -> None:
        """An episode asks no more."""
        self._open -= 1
        self._begin()

    def _begin(self) -> None:
        if self._waiting and len(self._waiting) == self._open:
            for turn in self._waiting:
                turn.set_result(None)
            self._waiting.clear()

    async def close(self) -> None:
        """As the engine does."""
        await self._engine.close()


def rollout(config: Config) -> dict[str, Any]:
    """Tokens are those of prompts and completions; a ratio is one of tokens a second."""
    environment = make("navigator")
    played = list(instances(get_profile(config.profile), "dev", 0, _INSTANCES + 1))
    size = config.grpo.group_size
    warm_up, *tasks_of = [
        [EpisodeTask(instance_id=i.id, episode=g, make=lambda i=i: environment.episode(i)) for g in range(size)]
        for i in [played[-1], *played[:-1]]
    ]
    tasks = [task for group in tasks_of for task in group]
    config = replace(config, engine=replace(config.engine, in_flight=len(tasks), max_num_seqs=len(tasks)))
    sampling = Sampling(max_tokens=config.grpo.max_tokens)

    def measure(runner: Runner, seed: int, **arguments: Any) -> tuple[list[Trajectory], RolloutStats]:
        return runner.run(tasks, sampling=sampling, seed=seed, **arguments)

    with open_engine(config.model.path, config) as runner:
        runner.run(warm_up, sampling=sampling, seed=1)
        trajectories, ours = measure(runner, seed=2)
    with open_engine(config.model.path, config) as runner:
        runner.run(warm_up, sampling=sampling, seed=1)
        barrier = Lockstep(runner.engine, len(tasks))
        lockstep = measure(replace(runner, engine=barrier), seed=2, on_finished=barrier.ended)[1]
    raw = _raw(config, [step for trajectory in trajectories for step in trajectory.steps])
    with open_engine(config.model.path, replace(config, engine=replace(config.engine, kind="transformers"))) as runner:
        runner.run(warm_up, sampling=sampling, seed=1)
        theirs = measure(runner, seed=2)[1]
    return {
        "model": config.model.path,
        "profile": config.profile,
        "episodes": len(tasks),
        "steps": ours.steps,
        "tokens_per_second": ours.tokens_per_second,
        "raw_engine_tokens_per_second": raw,
        "lockstep_tokens_per_second": lockstep.tokens_per_second,
        "transformers_tokens_per_second": theirs.tokens_per_second,
        "of_raw_engine": ours.tokens_per_second / raw,
        "over_lockstep": ours.tokens_per_second / lockstep.tokens_per_second,
        "over_transformers": ours.tokens_per_second / theirs.tokens_per_second,
        "prefix_cache_hit": ours.cache_hit,
        "environment_share": ours.own_seconds / ours.seconds,
        "idle_share": ours.idle_seconds / ours.seconds,
        "mean_in_flight": ours.mean_in_flight,
    }


def _raw(config: Config, steps: Sequence[Step]) -> float:
    """Tokens a second of one raw call over the prompts of `steps`."""
    from rollout.engines.vllm import time_raw

    rows = [(step.prompt_ids, len(step.completion_ids)) for step in steps]
    return sum(len(prompt) + drawn for prompt, drawn in rows) / time_raw(vllm_settings(config.model.path, config), rows)
