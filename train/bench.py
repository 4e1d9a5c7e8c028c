"""Ratios measured in one run: our way against the honest alternative, on this machine."""

import time
from collections.abc import Callable
from typing import Any

from env import make
from env.navigator.generate import good_instance, instances
from env.navigator.settings import get_profile
from train.config import Config


def generate(config: Config) -> dict[str, Any]:
    """Generation with validation, and teacher rows with the leak filter, on one core."""
    from collections import Counter

    from env.navigator.teacher import rows
    from train.teacher import play_teacher, refusal

    settings = get_profile(config.profile)
    split = "id_test"
    good_instance(settings, split, 0, Counter())
    begun, n = time.process_time(), 0
    while time.process_time() - begun < 10:
        good_instance(settings, split, n, Counter())
        n += 1
    seconds = time.process_time() - begun
    played = list(instances(settings, "train", 0, 30))
    begun, taught = time.process_time(), 0
    while time.process_time() - begun < 5:
        for instance in played:
            episode, steps = play_teacher(instance, style=config.teacher.style, noise=config.teacher.noise, seed=0)
            if refusal(episode, steps) is None:
                taught += len(list(rows(instance, steps)))
    return {
        "profile": config.profile,
        "instances": n,
        "cpu_seconds": seconds,
        "instances_per_cpu_second": n / seconds,
        "teacher_rows_per_cpu_second": taught / (time.process_time() - begun),
    }


def env(config: Config) -> dict[str, Any]:
    """Oracle episodes, every prompt rendered."""
    from env.navigator.policies import Oracle

    environment = make("navigator")
    played = list(instances(get_profile(config.profile), "id_test", 0, 50))
    begun, steps = time.process_time(), 0
    while time.process_time() - begun < 10:
        for instance in played:
            episode, oracle = environment.episode(instance), Oracle(0)
            while episode.ending is None:
                episode.observe()
                episode.step(oracle(episode))
                steps += 1
    seconds = time.process_time() - begun
    return {"profile": config.profile, "steps": steps, "cpu_seconds": seconds, "steps_per_cpu_second": steps / seconds}


def rollout(config: Config) -> dict[str, Any]:
    """The same sampled episodes by vLLM with the step-level scheduler, and by transformers in lockstep."""
    from dataclasses import replace

    from rollout.engine import Sampling
    from rollout.scheduler import EpisodeTask, RolloutStats
    from train.engines import open_engine

    environment = make("navigator")
    played = list(instances(get_profile(config.profile), "dev", 0, 8))
    tasks = [
        EpisodeTask(instance_id=instance.id, episode=g, make=lambda instance=instance: environment.episode(instance))
        for instance in played
        for g in range(config.grpo.group_size)
    ]
    sampling = Sampling(max_tokens=config.grpo.max_tokens)

    def measure(kind: Any) -> RolloutStats:
        with open_engine(config.model.path, replace(config, engine=replace(config.engine, kind=kind))) as runner:
            runner.run(tasks[: config.grpo.group_size], sampling=sampling, seed=1)
            return runner.run(tasks, sampling=sampling, seed=2)[1]

    ours, theirs = measure("vllm"), measure("transformers")
    return {
        "episodes": len(tasks),
        "vllm_tokens_per_second": ours.tokens_per_second,
        "transformers_tokens_per_second": theirs.tokens_per_second,
        "over_transformers": ours.tokens_per_second / theirs.tokens_per_second,
        "prefix_cache_hit": ours.cache_hit,
    }


BENCHES: dict[str, Callable[[Config], dict[str, Any]]] = {"generate": generate, "env": env, "rollout": rollout}
