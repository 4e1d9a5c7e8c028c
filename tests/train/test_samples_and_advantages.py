from dataclasses import replace

import pytest

from env.protocol import StepResult
from rollout.records import Group, Step, Trajectory
from train.advantages import ADVANTAGES, episode, episode_no_std, has_spread, rloo
from train.samples import make_samples, micro_batches, usable


def trajectory(reward, steps, *, error=None, instance="i", tokens=3):
    result = StepResult(kind=None, ids=(), ok=True, error=None, used=0, done=False)
    made = [
        Step(response="", result=result, prompt_ids=[1] * (5 + k), completion_ids=[2] * tokens, logprobs=[-0.5] * tokens)
        for k in range(steps)
    ]
    return Trajectory(instance_id=instance, seed=0, reward=reward, ending="answered", steps=tuple(made), error=error)


def group(*trajectories, instance="i"):
    return Group(instance_id=instance, trajectories=trajectories)


def test_advantages_by_hand():
    assert episode([1.0, 0.0, 0.0, 1.0]) == pytest.approx([1.0, -1.0, -1.0, 1.0], abs=1e-5)
    assert episode([1.0, 0.0, 0.0, 0.0]) == pytest.approx([1.7320508, -0.5773503, -0.5773503, -0.5773503], abs=1e-5)
    assert episode_no_std([1.0, 0.0, 0.0, 0.0]) == pytest.approx([0.75, -0.25, -0.25, -0.25])
    assert rloo([1.0, 0.0, 0.0, 0.0]) == pytest.approx([1.0, -1 / 3, -1 / 3, -1 / 3])


def test_equal_returns_have_no_spread_and_no_advantage():
    assert not has_spread([0.5, 0.5, 0.5])
    for advantage in ADVANTAGES.values():
        assert advantage([0.5, 0.5]) == pytest.approx([0.0, 0.0])


def test_groups_without_spread_and_failed_episodes_are_left_out():
    kept = usable(
        [
            group(trajectory(1.0, 2), trajectory(1.0, 3)),
            group(trajectory(1.0, 2), trajectory(0.0, 3), trajectory(0.5, 1, error="lost")),
            group(trajectory(1.0, 2), trajectory(0.0, 3, error="lost")),
        ]
    )
    assert [[t.reward for t in g.trajectories] for g in kept] == [[1.0, 0.0]]


@pytest.mark.parametrize("steps", [(1, 1), (2, 9), (14, 3), (1, 14)])
def test_every_episode_has_one_vote_whatever_its_steps(steps):
    samples = make_samples([group(trajectory(1.0, steps[0]), trajectory(0.0, steps[1]))], "episode")
    assert len(samples) == sum(steps)
    for number, count in enumerate(steps):
        own = [s for s in samples if s.episode == number]
        assert len(own) == count
        assert sum(s.weight for s in own) == pytest.approx(0.5)
        assert {round(s.advantage, 4) for s in own} == {1.0 if number == 0 else -1.0}
    assert sum(s.weight for s in samples) == pytest.approx(1.0)


def test_splitting_an_episode_into_more_steps_changes_no_advantage():
    short = make_samples([group(trajectory(1.0, 2), trajectory(0.0, 2), trajectory(0.3, 2))], "episode")
    long = make_samples([group(trajectory(1.0, 2), trajectory(0.0, 8), trajectory(0.3, 2))], "episode")
    assert {s.episode: s.advantage for s in short} == {s.episode: s.advantage for s in long}


def test_rows_carry_the_engines_ids_and_logprobs_untouched():
    (sample, *_) = make_samples([group(trajectory(1.0, 1), trajectory(0.0, 1))], "episode")
    assert (sample.prompt_ids, sample.completion_ids, sample.logprobs) == ([1] * 5, [2] * 3, [-0.5] * 3)


@pytest.mark.parametrize("shared", [False, True])
def test_micro_batches_hold_every_row_once_within_the_bound(shared):
    samples = make_samples([group(trajectory(1.0, 9), trajectory(0.0, 4))], "episode")
    batches = micro_batches(samples, 40, shared=shared)
    assert sorted(map(id, (s for b in batches for s in b.rows))) == sorted(map(id, samples))
    assert all(b.tokens <= 40 for b in batches)
    assert len(micro_batches(samples, 1, shared=shared)) == 13
    assert len(micro_batches(samples, 10_000, shared=shared)) == 1


def test_prefixes_are_shared_where_that_computes_fewer_tokens():
    samples = make_samples([group(trajectory(1.0, 1), *[trajectory(0.0, 1)] * 12)], "episode")
    # Prompts of five equal tokens: four are shared, one and three of the completion are left of each row.
    (batch,) = micro_batches(samples, 1000)
    assert (batch.shared, batch.tokens) == (True, 4 + 13 * 4)
    (alone,) = micro_batches(samples[:1], 1000)
    assert (alone.shared, alone.tokens) == (True, 8)
    apart = [replace(s, prompt_ids=[n]) for n, s in enumerate(samples)]
    (plain,) = micro_batches(apart, 1000)
    assert plain.tokens == 13 * 4
