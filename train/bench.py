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


def _rollout(config: Config) -> dict[str, Any]:
    from train.bench_rollout import rollout

    return rollout(config)


def _update(config: Config) -> dict[str, Any]:
    from train.bench_update import update

    return update(config)


BENCHES: dict[str, Callable[[Config], dict[str, Any]]] = {"generate": generate, "env": env, "rollout": _rollout, "update": _update}
