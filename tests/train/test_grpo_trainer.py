import math
from dataclasses import replace

import pytest
import torch

from train.adapters import load_model, lora_config, save_adapter
from train.config import ModelSettings
from train.grpo import instances_of_step
from train.grpo_trainer import EpisodeGRPOTrainer, TrainingFailed, trainer_config
from train.samples import Sample
from train.settings import GrpoSettings, LoraSettings

SETTINGS = GrpoSettings(learning_rate=1e-2, steps=2, groups=1, group_size=2, warmup_steps=0, max_tokens=8, save_steps=10)
ROWS = [([7, 8, 9], [10, 11], 1.0), ([7, 8, 9, 12], [13], 1.0), ([9, 9], [14, 15, 16], -1.0), ([20] * 9, [21, 22], -1.0), ([3], [4], -1.0)]
WEIGHTS = [1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6]


def logprobs(model, prompt, completion):
    ids = torch.tensor([[*prompt, *completion]])
    table = torch.log_softmax(model(ids).logits[0], -1)
    return torch.stack([table[len(prompt) - 1 + t, token] for t, token in enumerate(completion)])


@pytest.fixture
def samples(tiny_model_dir):
    """Two episodes of two and three steps, sampled by the model itself."""
    model = load_model(str(tiny_model_dir), ModelSettings()).eval()
    with torch.no_grad():
        return [
            Sample(
                prompt_ids=prompt,
                completion_ids=completion,
                logprobs=logprobs(model, prompt, completion).tolist(),
                advantage=advantage,
                weight=weight,
                instance_id="i",
                episode=int(advantage < 0),
            )
            for (prompt, completion, advantage), weight in zip(ROWS, WEIGHTS, strict=True)
        ]


def make(tiny_model_dir, tmp_path, collect, settings=SETTINGS):
    from peft import get_peft_model
    from transformers import AutoTokenizer

    torch.manual_seed(0)
    return EpisodeGRPOTrainer(
        model=get_peft_model(load_model(str(tiny_model_dir), ModelSettings()), lora_config(LoraSettings(r=4, alpha=8), dropout=0.0)),
        tokenizer=AutoTokenizer.from_pretrained(tiny_model_dir),
        args=trainer_config(settings, tmp_path, seed=0, bfloat16=False),
        settings=settings,
        collect=collect,
    )


def gradients(trainer):
    return {name: p.grad.clone() for name, p in trainer.model.named_parameters() if p.grad is not None}


def step(trainer):
    return trainer.training_step(trainer.model, None).item()


def test_the_loss_is_the_episode_weighted_clipped_surrogate(tiny_model_dir, tmp_path, samples):
    shifted = [replace(s, logprobs=[value - 0.4 for value in s.logprobs]) for s in samples]
    trainer = make(tiny_model_dir, tmp_path, lambda step: shifted, replace(SETTINGS, ratio_tolerance=1.0))
    ratio = math.exp(0.4)  # above 1.28: clipped where the advantage is positive, bounded by the cap where it is not
    expected = -(2 / 4) * 1.28 + (3 / 6) * min(ratio, 2.0)
    assert step(trainer) == pytest.approx(expected, abs=1e-5)
    assert trainer.measured["ratio"] == pytest.approx(ratio, abs=1e-5)
    assert trainer.measured["ratio_touched"] == 1.0


def test_the_ratio_is_truncated_where_clipping_does_not_bound_it(tiny_model_dir, tmp_path, samples):
    shifted = [replace(s, logprobs=[value - 2.0 for value in s.logprobs]) for s in samples]
    trainer = make(tiny_model_dir, tmp_path, lambda step: shifted, replace(SETTINGS, ratio_tolerance=10.0))
    assert step(trainer) == pytest.approx(-(2 / 4) * 1.28 + (3 / 6) * 2.0, abs=1e-5)


def test_the_gradient_is_that_of_the_hand_written_objective(tiny_model_dir, tmp_path, samples):
    trainer = make(tiny_model_dir, tmp_path, lambda step: samples)
    step(trainer)
    found = gradients(trainer)
    trainer.model.zero_grad()
    total = sum(
        -s.weight * s.advantage * torch.exp(lp - lp.detach()).mean()
        for s in samples
        for lp in [logprobs(trainer.model, s.prompt_ids, s.completion_ids)]
    )
    total.backward()
    expected = gradients(trainer)
    scale = max(g.abs().max().item() for g in expected.values())
    assert scale > 0
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6 * max(1.0, scale))


@pytest.mark.parametrize("tokens", [1, 14, 10_000])
@pytest.mark.parametrize("shared", [False, True])
def test_micro_batches_and_shared_prefixes_do_not_change_the_gradient(tiny_model_dir, tmp_path, samples, tokens, shared):
    samples = [replace(s, instance_id=f"i{n // 2}") for n, s in enumerate(samples)]
    whole = make(tiny_model_dir, tmp_path, lambda step: samples, replace(SETTINGS, shared_prefix=False))
    parts = make(tiny_model_dir, tmp_path, lambda step: samples, replace(SETTINGS, micro_batch_tokens=tokens, shared_prefix=shared))
    assert step(whole) == pytest.approx(step(parts), abs=1e-6)
    for (name, a), b in zip(gradients(whole).items(), gradients(parts).values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6, msg=name)


def test_the_kl_is_part_of_the_loss_by_its_weight(tiny_model_dir, tmp_path, samples):
    loose = replace(SETTINGS, kl_weight=0.5, ratio_tolerance=100.0, kl_tolerance=100.0)
    trainer = make(tiny_model_dir, tmp_path, lambda step: samples, loose)
    torch.manual_seed(3)
    for name, parameter in trainer.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    expected = 0.0
    with torch.no_grad():
        for s in samples:
            # The samples are of the bare model: their log-probabilities are the reference and the old ones.
            gap = logprobs(trainer.model, s.prompt_ids, s.completion_ids) - torch.tensor(s.logprobs)
            ratio = torch.exp(gap)
            surrogate = torch.minimum(ratio.clamp(max=2.0) * s.advantage, ratio.clamp(0.8, 1.28) * s.advantage)
            kl = torch.exp(-gap) + gap - 1
            expected += s.weight * (0.5 * kl - surrogate).mean().item()
    assert trainer.training_step(trainer.model, None).item() == pytest.approx(expected, abs=1e-5)
    assert trainer.measured["kl"] > 1e-3


def test_the_learning_rate_advances_once_per_batch_whatever_the_micro_batches(tiny_model_dir, tmp_path, samples):
    slow = replace(SETTINGS, warmup_steps=4, micro_batch_tokens=1, ratio_tolerance=10.0)
    trainer = make(tiny_model_dir, tmp_path, lambda step: samples, slow)
    trainer.train()
    assert trainer.lr_scheduler.get_last_lr()[0] == pytest.approx(1e-2 * 2 / 4)


@pytest.mark.parametrize(("schedule", "last"), [("constant_with_warmup", 1e-2), ("linear", 0.0)])
def test_the_learning_rate_falls_where_the_schedule_says_so(tiny_model_dir, tmp_path, samples, schedule, last):
    trainer = make(tiny_model_dir, tmp_path, lambda step: samples, replace(SETTINGS, schedule=schedule, ratio_tolerance=10.0))
    trainer.train()
    assert trainer.lr_scheduler.get_last_lr()[0] == last


def test_before_the_first_update_the_kl_is_zero_and_the_engine_agrees(tiny_model_dir, tmp_path, samples):
    trainer = make(tiny_model_dir, tmp_path, lambda step: samples)
    step(trainer)
    assert abs(trainer.measured["kl"]) < 1e-9
    assert trainer.measured["ratio_deviation"] < 1e-5


def test_an_engine_on_other_weights_is_refused_at_start_up(tiny_model_dir, tmp_path, samples):
    wrong = [replace(s, logprobs=[value + 0.1 for value in s.logprobs]) for s in samples]
    trainer = make(tiny_model_dir, tmp_path, lambda step: wrong)
    with pytest.raises(TrainingFailed, match=r"trainer and engine disagree: .* 0\.0952, grpo\.ratio_tolerance allows 0\.01"):
        step(trainer)


def test_an_adapter_that_is_not_fresh_is_refused_at_start_up(tiny_model_dir, tmp_path, samples):
    trainer = make(tiny_model_dir, tmp_path, lambda step: samples, replace(SETTINGS, ratio_tolerance=100.0))
    for name, parameter in trainer.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.constant_(parameter, 0.05)
    with pytest.raises(TrainingFailed, match="the adapter must be fresh"):
        step(trainer)


def test_a_loss_that_is_no_number_ends_the_run(tiny_model_dir, tmp_path, samples):
    broken = [replace(s, advantage=math.nan) for s in samples]
    with pytest.raises(TrainingFailed, match="lower grpo.learning_rate"):
        step(make(tiny_model_dir, tmp_path, lambda step: broken))


def test_training_moves_the_adapter_once_per_batch_and_measures_the_kl(tiny_model_dir, tmp_path, samples):
    seen = []
    trainer = make(tiny_model_dir, tmp_path, lambda step: seen.append(step) or samples, replace(SETTINGS, ratio_tolerance=10.0))
    before = {n: p.clone() for n, p in trainer.model.named_parameters()}
    trainer.train()
    moved = {n for n, p in trainer.model.named_parameters() if not torch.equal(p, before[n])}
    assert seen == [0, 1]
    assert moved
    assert all("lora_" in name for name in moved)
    assert trainer.measured["kl"] > 1e-6
    assert trainer.state.global_step == 2


def test_a_batch_without_a_usable_group_changes_nothing(tiny_model_dir, tmp_path):
    trainer = make(tiny_model_dir, tmp_path, lambda step: [])
    before = {n: p.clone() for n, p in trainer.model.named_parameters()}
    trainer.train()
    assert all(torch.equal(p, before[n]) for n, p in trainer.model.named_parameters())


def test_the_adapter_is_saved_whole_and_merges_into_the_same_function(tiny_model_dir, tmp_path, samples):
    from train.adapters import merge

    trainer = make(tiny_model_dir, tmp_path, lambda step: samples, replace(SETTINGS, ratio_tolerance=10.0))
    trainer.train()
    save_adapter(trainer.model, tmp_path / "adapter")
    assert {p.name for p in (tmp_path / "adapter").iterdir()} >= {"adapter_config.json", "adapter_model.safetensors"}
    merged = load_model(str(merge(str(tiny_model_dir), tmp_path / "adapter", tmp_path / "merged", ModelSettings())), ModelSettings())
    ids = torch.tensor([[7, 8, 9, 10]])
    with torch.no_grad():
        torch.testing.assert_close(merged.eval()(ids).logits, trainer.model.eval()(ids).logits, rtol=1e-4, atol=1e-5)


def test_the_instances_of_a_step_follow_from_its_number():
    first = [i for step in range(4) for i in instances_of_step(8, 2, step, seed=5)]
    assert sorted(first) == list(range(8))
    assert instances_of_step(8, 2, 3, seed=5) == first[6:]
    assert [i for step in range(4, 8) for i in instances_of_step(8, 2, step, seed=5)] != first
    assert len(instances_of_step(3, 8, 0, seed=5)) == 8
