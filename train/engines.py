"""Starts the engine that a configuration asks for, with a loop to run it from synchronous code."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollout.engine import Adapter, Engine, Sampling
from rollout.loop import Loop
from rollout.records import Trajectory
from rollout.scheduler import EpisodeTask, RolloutStats, run_episodes
from train.config import Config

if TYPE_CHECKING:
    from rollout.engines.vllm import VllmSettings


@dataclass(frozen=True, slots=True)
class Runner:
    """An engine and the loop it lives in."""

    engine: Engine
    loop: Loop
    in_flight: int

    def run(
        self,
        tasks: Sequence[EpisodeTask],
        *,
        sampling: Sampling,
        seed: int,
        adapter: Adapter | None = None,
        on_finished: Callable[[Trajectory], None] = lambda trajectory: None,
    ) -> tuple[list[Trajectory], RolloutStats]:
        """rollout.scheduler.run_episodes, waited for."""
        return self.loop.run(
            run_episodes(
                self.engine, tasks, sampling=sampling, seed=seed, in_flight=self.in_flight, adapter=adapter, on_finished=on_finished
            )
        )


@contextmanager
def open_engine(model: str, config: Config) -> Iterator[Runner]:
    """The engine of `config.engine` for a model folder or hub name, closed at the end of the block."""
    with Loop() as loop:
        engine = loop.run(_start(model, config))
        try:
            yield Runner(engine, loop, config.engine.in_flight)
        finally:
            loop.run(engine.close())


async def _start(model: str, config: Config) -> Engine:
    settings = config.engine
    if settings.kind == "transformers":
        from rollout.engines.transformers import TransformersEngine

        return TransformersEngine(model, dtype=config.model.dtype)
    from rollout.engines.vllm import VllmEngine

    return await VllmEngine.start(vllm_settings(model, config))


def vllm_settings(model: str, config: Config) -> "VllmSettings":
    """How `config` starts vLLM for a model folder or hub name."""
    from rollout.engines.vllm import VllmSettings

    settings = config.engine
    return VllmSettings(
        model=model,
        dtype=config.model.dtype,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        kv_cache_gib=settings.kv_cache_gib,
        gpu_memory_utilization=settings.gpu_memory_utilization,
        max_loras=settings.max_loras,
        max_lora_rank=config.lora.r,
        enforce_eager=settings.enforce_eager,
        seed=config.seed,
    )
