"""The trainer and vLLM together: rows that the engine sampled, adapters that the trainer writes."""

import pytest
from transformers import AutoTokenizer, TrainerCallback

from env.protocol import Ending, Observation, StepResult
from rollout.engine import Adapter
from train.adapters import load_model, lora_config, save_adapter
from train.config import ModelSettings
from train.engines import Runner
from train.grpo import Collector
from train.grpo_trainer import EpisodeGRPOTrainer, trainer_config
from train.settings import GrpoSettings, LoraSettings


class Instance:
    id = "i"


class Shouting:
    """Asks three times; earns one for each response of an even length."""

    instance_id = "i"

    def __init__(self):
        self.ending, self.asked, self.even = None, 0, 0

    def observe(self):
        return Observation(system="Answer the question.", static="Question: Amber Falcon?\n", dynamic=f"step {self.asked}")

    def step(self, response, *, truncated=False):
        self.asked += 1
        self.even += len(response) % 2 == 0
        self.ending = Ending.ANSWERED if self.asked == 3 else None
        return StepResult(kind=None, ids=(), ok=True, error=None, used=0, done=self.asked == 3)

    @property
    def reward(self):
        return float(self.even) if self.ending else None

    def info(self):
        return {}

    def metrics(self):
        return {}


class Environment:
    name = "shouting"

    def episode(self, instance):
        return Shouting()


class HandOver(TrainerCallback):
    """Gives the adapter to the collector after each step, and keeps what the step measured."""

    def __init__(self, collector, folder):
        self.collector, self.folder, self.rows = collector, folder, []

    def on_step_end(self, args, state, control, **kwargs):
        version = state.global_step
        save_adapter(self.trainer.model, self.folder / f"v{version}")
        self.collector.adapter = Adapter(version=version, path=self.folder / f"v{version}")
        self.rows.append({**self.collector.measured, **self.trainer.measured})


@pytest.fixture
def measured(vllm, tiny_model_dir, tmp_path):
    """Rows of three optimiser steps on the session's engine."""
    from peft import get_peft_model

    settings = GrpoSettings(learning_rate=3e-2, steps=3, groups=1, group_size=6, warmup_steps=0, max_tokens=6, save_steps=10)
    collector = Collector(Runner(*vllm, in_flight=4), Environment(), [Instance()], settings, seed=0)
    hand_over = HandOver(collector, tmp_path / "adapters")
    trainer = EpisodeGRPOTrainer(
        model=get_peft_model(load_model(str(tiny_model_dir), ModelSettings()), lora_config(LoraSettings(r=8, alpha=16), dropout=0.0)),
        tokenizer=AutoTokenizer.from_pretrained(tiny_model_dir),
        args=trainer_config(settings, tmp_path, seed=0, bfloat16=False),
        settings=settings,
        collect=collector,
        callbacks=[hand_over],
    )
    hand_over.trainer = trainer
    trainer.train()
    return hand_over.rows


def test_every_step_is_sampled_from_the_policy_that_is_trained(measured):
    assert [row["rows"] for row in measured] == [18, 18, 18]
    # The ratio stays 1 while the policy leaves its start: the engine serves each new adapter, and none of the old.
    assert all(row["ratio_deviation"] < 1e-3 for row in measured)
    assert measured[0]["kl"] < 1e-6
    assert measured[1]["kl"] > 1e-4
    assert measured[2]["kl"] > 1e-4
