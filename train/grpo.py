"""GRPO: sample groups of episodes, keep those that teach, update the adapter, hand it to the engine.

The instances of a step follow from (seed, step) alone, so that a resumed run goes on with the groups that it
would have had. Every optimiser step writes the adapter under a new path: engines cache by path.
"""

import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from transformers import AutoTokenizer, TrainerCallback

from env import make
from env.errors import InputError, SettingError
from rollout.engine import Adapter, Sampling
from rollout.records import Group, Trajectory
from rollout.scheduler import EpisodeTask, RolloutStats
from rollout.seeds import derive
from train.adapters import load_model, lora_config, save_adapter
from train.callbacks import quiet
from train.config import Config, plain
from train.engines import Runner, open_engine
from train.grpo_trainer import EpisodeGRPOTrainer, trainer_config
from train.progress import Progress
from train.resume import resume_from, training_inputs
from train.samples import Sample, make_samples, usable
from train.settings import GrpoSettings
from train.tracking import Tracker

_STILL_KL = 1e-6
_STILL_STEPS = 10
"""A run whose KL is below _STILL_KL after so many steps says so."""


def instances_of_step(n_instances: int, groups: int, step: int, seed: int) -> list[int]:
    """Indices of a step's instances: all instances in seeded order, again in another order when they are used up."""
    wanted = range(step * groups, (step + 1) * groups)
    orders: dict[int, list[int]] = {}
    found = []
    for position in wanted:
        epoch, place = divmod(position, n_instances)
        if epoch not in orders:
            orders[epoch] = list(range(n_instances))
            Random(derive(seed, "order", epoch)).shuffle(orders[epoch])
        found.append(orders[epoch][place])
    return found


@dataclass(slots=True)
class Collector:
    """Rolls out the groups of a step and turns them into rows."""

    runner: Runner
    environment: Any
    instances: Sequence[Any]
    settings: GrpoSettings
    seed: int
    adapter: Adapter | None = None
    """The current policy; None is the SFT policy itself."""
    measured: dict[str, float] = field(default_factory=dict)
    """Numbers of the last step."""

    def __call__(self, step: int) -> list[Sample]:
        """Rows of optimiser step `step`; empty when no group had a spread."""
        chosen = [self.instances[i] for i in instances_of_step(len(self.instances), self.settings.groups, step, self.seed)]
        tasks = [
            EpisodeTask(instance_id=instance.id, episode=g, make=lambda instance=instance: self.environment.episode(instance))
            for instance in chosen
            for g in range(self.settings.group_size)
        ]
        sampling = Sampling(max_tokens=self.settings.max_tokens, temperature=self.settings.temperature)
        trajectories, stats = self.runner.run(tasks, sampling=sampling, seed=derive(self.seed, "grpo", step), adapter=self.adapter)
        size = self.settings.group_size
        groups = [
            Group(instance_id=instance.id, trajectories=tuple(trajectories[i * size : (i + 1) * size])) for i, instance in enumerate(chosen)
        ]
        kept = usable(groups)
        self.measured = _rollout_metrics(trajectories, stats) | {"usable_groups": len(kept), "groups": len(groups)}
        return make_samples(kept, self.settings.advantage) if kept else []


def _rollout_metrics(trajectories: Sequence[Trajectory], stats: RolloutStats) -> dict[str, float]:
    steps = [step for t in trajectories for step in t.steps]
    return {
        "reward": fmean(t.reward for t in trajectories),
        "accuracy": fmean(bool(t.metrics.get("correct")) for t in trajectories),
        "ceiling_exceeded": fmean(t.ending == "ceiling_exceeded" for t in trajectories),
        "budget_exhausted": fmean(t.ending == "budget_exhausted" for t in trajectories),
        "compress_use": fmean(bool(t.metrics.get("n_compress")) for t in trajectories),
        "steps_per_episode": len(steps) / len(trajectories),
        "tokens_per_step": stats.completion_tokens / max(1, len(steps)),
        "failed_episodes": stats.failed,
        "cache_hit": stats.cache_hit,
        "rollout_seconds": stats.seconds,
        "rollout_tokens_per_second": stats.tokens_per_second,
    }


class _StepEnd(TrainerCallback):  # type: ignore[misc]
    """After each optimiser step: write the adapter, hand it over, report."""

    def __init__(self, collector: Collector, tracker: Tracker, out: Path) -> None:
        self.collector, self.tracker, self.out = collector, tracker, out
        self.trainer: EpisodeGRPOTrainer | None = None
        self.progress: Progress | None = None
        self.begun = 0.0
        self.quiet = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.progress = Progress("grpo", total=state.max_steps - state.global_step, unit="step")
        if state.global_step > 0:
            self._hand_over(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.begun = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self.trainer is not None
        assert self.progress is not None
        updated = time.monotonic()
        self._hand_over(state.global_step)
        rate = self.trainer.lr_scheduler.get_last_lr()[0]
        measured = {**self.collector.measured, **self.trainer.measured, "learning_rate": rate}
        measured["sync_seconds"] = time.monotonic() - updated
        measured["update_seconds"] = updated - self.begun - measured["rollout_seconds"]
        self.tracker.log(measured, step=state.global_step)
        self.progress(1, reward=round(measured["reward"], 3), kl=f"{measured['kl']:.1e}")
        self.quiet = self.quiet + 1 if measured["kl"] < _STILL_KL else 0
        if self.quiet == _STILL_STEPS:
            self.tracker.alarm(f"the KL is still below {_STILL_KL:g} after {_STILL_STEPS} steps: nothing moves, raise grpo.learning_rate")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self.progress is not None
        self.progress.close()

    def _hand_over(self, version: int) -> None:
        """Write the current adapter as a version and make the collector use it; the folder before last goes."""
        assert self.trainer is not None
        path = self.out / "adapters" / f"v{version}"
        save_adapter(self.trainer.accelerator.unwrap_model(self.trainer.model), path)
        self.collector.adapter = Adapter(version=version, path=path)
        shutil.rmtree(self.out / "adapters" / f"v{version - 2}", ignore_errors=True)


def run_grpo(config: Config, instances: Path, out: Path, *, model: str | None = None, runner: Runner | None = None) -> dict[str, Any]:
    """Train a fresh LoRA on top of `model` (config.model.path) and write it to `out/adapter`.

    Goes on from the last checkpoint in `out` when that was made with the same settings, instances and model.
    `runner` may bring an engine that serves the same model.
    """
    model = model or config.model.path
    settings = config.grpo
    environment = make("navigator")
    loaded = list(environment.read(instances))
    if not loaded:
        raise InputError(f"{instances}: no instance in it")
    checkpoint = resume_from(out, {**training_inputs(config, model, instances), "grpo": plain(settings)})
    with ExitStack() as stack:
        tracker = stack.enter_context(Tracker(out, config.tracking, config.to_dict()))
        runner = runner or stack.enter_context(open_engine(model, config))
        if not runner.engine.gives_ids:
            raise SettingError(
                f"engine.kind {config.engine.kind} gives no token ids and log-probabilities: GRPO needs vllm or transformers"
            )
        collector = Collector(runner, environment, loaded, settings, config.seed)
        callback = _StepEnd(collector, tracker, out)
        from peft import get_peft_model

        trainer = EpisodeGRPOTrainer(
            model=get_peft_model(load_model(model, config.model), lora_config(config.lora, dropout=0.0)),
            tokenizer=AutoTokenizer.from_pretrained(model),
            args=trainer_config(settings, out, seed=config.seed, bfloat16=config.model.dtype == "bfloat16"),
            settings=settings,
            collect=collector,
            callbacks=[callback],
        )
        callback.trainer = trainer
        quiet(trainer)
        trainer.train(resume_from_checkpoint=checkpoint)
        save_adapter(trainer.model, out / "adapter")
    return {"steps": trainer.state.global_step}
