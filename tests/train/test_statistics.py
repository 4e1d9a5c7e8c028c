import numpy as np
import pytest

from train.statistics import bootstrap_mean, mcnemar, paired, wilson


def test_wilson_intervals_of_known_shares():
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775328), abs=1e-6)
    assert wilson(5, 10) == pytest.approx((0.2365931, 0.7634069), abs=1e-6)
    assert wilson(700, 1000) == pytest.approx((0.6708675, 0.7275829), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_mcnemar_is_an_exact_sign_test():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 5) == 1.0
    assert mcnemar(6, 0) == pytest.approx(2 / 64)
    assert mcnemar(1, 7) == pytest.approx(2 * 9 / 256)


def test_a_paired_comparison_counts_gains_and_losses():
    found = paired([True, True, False, True], [False, True, True, False])
    assert (found.n, found.gained, found.lost, found.difference, found.p_value) == (4, 2, 1, 0.25, 1.0)
    assert found.interval[0] <= 0.25 <= found.interval[1]


def test_a_bootstrap_interval_of_equal_values_is_a_point():
    assert bootstrap_mean([2.0] * 20) == (2.0, 2.0)


def test_wilson_covers_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(0)
    hits = [low <= p <= high for p in (0.05, 0.3, 0.7) for s in generator.binomial(200, p, 2000) for low, high in [wilson(int(s), 200)]]
    assert 0.93 <= np.mean(hits) <= 0.97


def test_a_lower_confidence_gives_a_narrower_interval():
    assert wilson(5, 10, confidence=0.9) == pytest.approx((0.2692718, 0.7307282), abs=1e-6)


def test_a_paired_comparison_is_the_same_every_time_and_finds_a_clear_gain():
    a, b = [True] * 60 + [False] * 40, [True] * 40 + [False] * 60
    found = paired(a, b)
    assert found == paired(a, b)
    assert (found.gained, found.lost, found.p_value) == (20, 0, 2 / 2**20)
    assert 0 < found.interval[0] < 0.2 < found.interval[1]


def test_paired_intervals_cover_the_true_difference():
    generator = np.random.default_rng(1)
    hits = []
    for _ in range(150):
        shared = generator.random(100)
        found = paired([bool(x) for x in shared < 0.6], [bool(x) for x in (shared + generator.normal(0, 0.2, 100)) % 1 < 0.6])
        hits.append(found.interval[0] <= 0.0 <= found.interval[1])
    assert 0.9 <= np.mean(hits) <= 0.99
