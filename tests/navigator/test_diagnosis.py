from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest

from env.errors import InputError
from env.navigator.diagnosis import Miss, Spent, Use, diagnose, reads_by_hop
from env.navigator.episode import NavigatorEpisode
from env.navigator.policies import Oracle, RandomReader
from env.navigator.traces import trace


def diagnosed(instance, *actions):
    return diagnose(trace(instance, [(f"ACTION: {action}", False) for action in actions]))


def uses(diagnosis):
    return [spent.use for spent in diagnosis.steps]


def test_every_read_is_one_of_four(village):
    found = diagnosed(village, "READ 2", "READ 1", "DROP 2", "READ 2", "READ 3", "READ 5", "ANSWER 4,210")
    assert uses(found) == [Use.OFF_TARGET, Use.ON_TARGET, Use.DROP, Use.REREAD, Use.OUT_OF_ORDER, Use.ON_TARGET, Use.ANSWER]
    assert [spent.hop for spent in found.steps] == [1, 1, 2, 2, 2, 2, None]
    assert (found.hops_resolved, found.hops_needed) == (3, 3)


def test_steps_that_do_nothing(village):
    found = diagnosed(village, "nonsense", "READ 99", "READ 1", "READ 1", "DROP 4", "COMPRESS S1 :: x")
    assert uses(found) == [Use.INVALID, Use.REFUSED, Use.ON_TARGET, Use.REFUSED, Use.REFUSED, Use.REFUSED]
    assert found.wasted == 5


def test_a_step_over_the_ceiling_reads_nothing(village):
    found = diagnosed(replace(village, env={"ceiling": 150}), "READ 1", "READ 5")
    assert uses(found) == [Use.ON_TARGET, Use.CEILING]
    assert found.hops_resolved == 1


def test_wasted_steps_are_those_a_perfect_policy_does_not_take(village):
    assert diagnosed(village, "READ 1", "READ 5", "READ 3", "ANSWER 1").wasted == 0
    assert diagnosed(village, "READ 1", "DROP 1", "READ 1", "READ 4", "COMPRESS 1 4 :: Ada", "ANSWER 1").wasted == 4
    assert diagnosed(replace(village, min_steps=6), "READ 1", "DROP 1", "READ 5", "COMPRESS 5 :: Bo", "READ 3").wasted == 0


def test_an_off_target_read_is_set_against_a_uniform_draw(village):
    # Wanted: chunk 1 of section A. Off-target could be 0, 2 (each a neighbour) and 4, 6, 7 elsewhere.
    near, far = (diagnosed(village, f"READ {chunk}").steps[0] for chunk in (0, 7))
    chance = {"chance_wrong_section": 0.6, "chance_distance": 1.0}
    assert near == Spent(use=Use.OFF_TARGET, hop=1, miss=Miss(wrong_section=False, distance=1, **chance))
    assert far == Spent(use=Use.OFF_TARGET, hop=1, miss=Miss(wrong_section=True, distance=None, **chance))


def test_chance_leaves_out_what_has_been_read(village):
    # Wanted: chunk 3 of section A, after 1, 5, 2 and 4: left are 0 at distance 3, 6 and 7.
    miss = diagnosed(village, "READ 1", "READ 5", "READ 2", "READ 4", "READ 0").steps[-1].miss
    assert miss == Miss(wrong_section=False, distance=3, chance_wrong_section=pytest.approx(2 / 3), chance_distance=3.0)
    # After 4 and 6 no chunk of section B is left to hit.
    miss = diagnosed(village, "READ 1", "READ 4", "READ 6", "READ 7").steps[-1].miss
    assert miss == Miss(wrong_section=True, distance=None, chance_wrong_section=1.0, chance_distance=None)


def test_after_the_whole_chain_nothing_is_wanted(village):
    assert diagnosed(village, "READ 1", "READ 5", "READ 3", "READ 0").steps[-1] == Spent(use=Use.OFF_TARGET, hop=None, miss=None)


def test_reads_are_counted_for_the_hop_that_was_wanted(village):
    found = diagnosed(village, "READ 0", "READ 1", "READ 4", "DROP 4", "READ 4")
    assert list(reads_by_hop(found)) == [
        (1, [Use.OFF_TARGET, Use.ON_TARGET], True),
        (2, [Use.OFF_TARGET, Use.REREAD], False),
    ]
    whole = diagnosed(village, "READ 1", "READ 5", "READ 3", "READ 0")
    assert [(hop, resolved) for hop, _, resolved in reads_by_hop(whole)] == [(1, True), (2, True), (3, True)]


def test_an_instance_without_evidence_cannot_be_diagnosed(village):
    with pytest.raises(InputError, match="'village' records no evidence"):
        diagnosed(replace(village, evidence=[]), "READ 1")


def played(instance, policy):
    episode, responses = NavigatorEpisode(instance), []
    while episode.ending is None:
        responses.append((policy(episode), False))
        episode.step(responses[-1][0])
    return diagnose(trace(instance, responses))


def test_the_oracle_wastes_nothing(laptop, deep):
    for instance in [*laptop, *deep]:
        found = played(instance, Oracle(0))
        assert (found.wasted, found.hops_resolved) == (0, instance.n_hops)
        assert Counter(uses(found))[Use.ON_TARGET] == instance.n_hops


def test_a_random_reader_misses_as_chance_does(laptop):
    misses = [spent.miss for instance in laptop for seed in range(20) for spent in played(instance, RandomReader(seed)).steps]
    misses = [miss for miss in misses if miss]
    assert len(misses) > 500
    assert fmean(m.wrong_section for m in misses) == pytest.approx(fmean(m.chance_wrong_section for m in misses), abs=0.03)
