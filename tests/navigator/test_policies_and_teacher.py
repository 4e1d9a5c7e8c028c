from dataclasses import replace

import pytest

from env.navigator.episode import NavigatorEpisode
from env.navigator.policies import POLICIES, Oracle
from env.navigator.teacher import leak, rows
from train.teacher import play_teacher, refusal


def finish(instance, policy):
    episode = NavigatorEpisode(instance)
    while episode.ending is None:
        episode.step(policy(episode))
    return episode


def test_the_oracle_is_right_in_exactly_min_steps(laptop, deep, public):
    for instance in [*laptop, *deep, *public]:
        episode = finish(instance, Oracle(0))
        assert (episode.correct, episode.steps_used) == (True, instance.min_steps)


def test_the_noisy_oracle_is_always_right_and_takes_longer(laptop, deep):
    episodes = [finish(instance, Oracle(seed, noise=0.15)) for seed in range(4) for instance in [*laptop, *deep]]
    assert all(episode.correct for episode in episodes)
    ratio = sum(e.steps_used / e.instance.min_steps for e in episodes) / len(episodes)
    assert 1.1 < ratio < 1.3


@pytest.mark.parametrize("name", ["random", "no-read"])
def test_policies_that_do_not_search_end_and_hold_one_chunk_at_most(laptop, name):
    for seed, instance in enumerate(laptop):
        episode = finish(instance, POLICIES[name](seed))
        assert episode.metrics()["answered"]
        assert episode.metrics()["n_reads"] <= (3 if name == "random" else 0)


@pytest.mark.parametrize("style", ["derive", "assert"])
def test_teacher_episodes_are_kept_in_both_styles(laptop, deep, public, style):
    for instance in [*laptop, *deep, *public]:
        episode, steps = play_teacher(instance, style=style, noise=0.0, seed=0)
        assert refusal(episode, steps) is None


def test_the_derive_style_writes_the_comparison(laptop):
    instance = laptop[0]
    _, steps = play_teacher(instance, style="derive", noise=0.0, seed=0)
    e = instance.evidence[0]
    chunk = instance.chunks[e.chunk_idx]
    assert steps[0].response == (
        f"THOUGHT: need {e.field} of {e.entity}. {chunk.section}: {chunk.entity_names[0]} ≤ {e.entity} ≤ {chunk.entity_names[-1]}, "
        f"chunk {e.chunk_idx}.\nACTION: READ {e.chunk_idx}"
    )
    _, steps = play_teacher(instance, style="assert", noise=0.0, seed=0)
    assert steps[0].response == f"THOUGHT: need {e.field} of {e.entity}. {chunk.section}: chunk {e.chunk_idx}.\nACTION: READ {e.chunk_idx}"


def test_a_name_or_value_that_was_not_seen_is_a_leak(laptop):
    instance = laptop[0]
    _, steps = play_teacher(instance, style="derive", noise=0.0, seed=0)
    assert leak(instance, steps) is None
    unseen = next(n for c in instance.chunks for n in c.entity_names if n not in steps[0].observation.static)
    assert (
        leak(instance, [replace(steps[0], response=f"THOUGHT: {unseen}\nACTION: READ 1")]) == f"{unseen!r} is written but not in the prompt"
    )
    assert (
        leak(instance, [replace(steps[0], response=f"ACTION: ANSWER {instance.answer}")])
        == f"{instance.answer!r} is written but not in the prompt"
    )


def test_reading_evidence_before_its_entity_was_seen_is_a_leak_although_the_map_shows_it(laptop):
    instance = next(i for i in laptop if i.evidence[1].entity in NavigatorEpisode(i).observe().static)
    _, steps = play_teacher(instance, style="derive", noise=0.0, seed=0)
    second = instance.evidence[1]
    early = replace(steps[0], response=f"ACTION: READ {second.chunk_idx}", read=second.chunk_idx)
    assert leak(instance, [early]) == f"chunk {second.chunk_idx} is read before {second.entity!r} was seen"


def test_a_wrong_read_is_played_but_never_taught(laptop):
    instance = laptop[0]
    _, steps = play_teacher(instance, style="derive", noise=0.6, seed=3)
    evidence = {e.chunk_idx for e in instance.evidence}
    wrong = [s for s in steps if s.read is not None and s.read not in evidence]
    taught = list(rows(instance, steps))
    assert wrong
    assert len(taught) == len(steps) - len(wrong)
    assert not {s.response for s in wrong} & {row["completion"] for row in taught}
    assert any("ACTION: DROP" in row["completion"] for row in taught)
