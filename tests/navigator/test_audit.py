import math
from dataclasses import replace
from random import Random

import pytest

from env.navigator.audit import Audit, Mean, auc
from env.navigator.generate import instances
from env.navigator.settings import get_profile


@pytest.fixture(scope="module")
def population():
    return list(instances(get_profile("laptop"), "train", 0, 150))


def report(population):
    audit = Audit()
    for instance in population:
        audit.add(instance)
    return audit.report()


def failing(found):
    return {name for name, item in found["evidence_among_registers"].items() if not item["passed"]}


def test_auc_counts_ties_half_and_needs_both_kinds():
    assert auc([(True, 1.0), (False, 0.0), (False, 1.0)]) == 0.75
    assert auc([(True, 1.0)]) is None


def test_a_mean_of_too_few_values_tells_nothing():
    mean = Mean()
    for value in [0.25, 0.75] * 15:
        assert mean.result() == (0.5, math.inf)
        mean.add(value)
    assert mean.result() == (0.5, pytest.approx(0.25 * math.sqrt(30 / 29 / 30)))


def test_generated_instances_show_nothing(population):
    assert report(population)["passed"] is True


def test_nothing_is_reported_on_twenty_fresh_populations():
    for start in range(50_000, 51_200, 60):
        found = report(instances(get_profile("laptop"), "train", start, 60))
        assert found["passed"] is True, found


def test_overlap_is_not_gated_over_all_registers(population):
    found = report(population)["evidence_among_registers"]["overlap"]
    assert found["gated"] is False
    assert found["auc"] > 0.6


def bias(instance, feature):
    """The instance with its evidence moved to the chunks that are largest by a feature."""
    registers = [c for c in instance.chunks if c.kind == "register"]
    ranked = sorted(registers, key=feature, reverse=True)[: len(instance.evidence)]
    return replace(instance, evidence=[replace(e, chunk_idx=c.idx) for e, c in zip(instance.evidence, ranked, strict=True)])


def test_a_planted_length_bias_is_caught(population):
    assert "tokens" in failing(report([bias(i, lambda c: c.tokens) for i in population]))


def test_a_planted_position_bias_is_caught(population):
    assert {"position", "logistic"} <= failing(report([bias(i, lambda c: -c.idx) for i in population]))


def test_a_planted_entry_count_bias_is_caught(population):
    def crowded(instance):
        wanted = {e.chunk_idx for e in instance.evidence}
        chunks = [replace(c, entity_names=[*c.entity_names, "One More"]) if c.idx in wanted else c for c in instance.chunks]
        return replace(instance, chunks=chunks)

    assert {"entries", "logistic"} <= failing(report([crowded(i) for i in population]))


def test_a_planted_header_bias_is_caught(population):
    def told(instance):
        # Every evidence header repeats words of the question, as a generator that titles chunks by topic would.
        answer = instance.evidence[-1].chunk_idx
        chunks = [replace(c, text=f"{instance.question}\n{c.text}") if c.idx == answer else c for c in instance.chunks]
        return replace(instance, chunks=chunks)

    found = report([told(i) for i in population])["answer_in_section"]
    assert {name for name, item in found.items() if not item["passed"]} == {"overlap"}


def test_a_weak_bias_in_two_features_is_found_by_the_model_at_least(population):
    random = Random(0)
    biased = [bias(i, lambda c: c.tokens - c.idx) if random.random() < 0.5 else i for i in population]
    assert "logistic" in failing(report(biased))


def test_too_few_instances_fail_nothing(population):
    assert report([bias(i, lambda c: c.idx) for i in population[:10]])["passed"] is True
