import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env.navigator.episode import NavigatorEpisode
from env.navigator.exploits import check_accounting
from env.navigator.policies import Oracle
from env.navigator.settings import Rules
from env.protocol import Ending


def play(instance, *responses, rules=None):
    episode = NavigatorEpisode(instance, rules)
    return episode, [episode.step(response) for response in responses]


def codes(results):
    return [(r.kind, r.error, r.used, r.done) for r in results]


def test_read_compress_read_answer(small):
    episode, results = play(
        small, "ACTION: READ 0", "ACTION: COMPRESS 0 :: Alder: Lead = Ada Lind", "ACTION: READ 1", "ACTION: ANSWER 4,885,866"
    )
    assert codes(results) == [
        ("READ", None, 342, False),
        ("COMPRESS", None, 6, False),
        ("READ", None, 374, False),
        ("ANSWER", None, 374, True),
    ]
    assert (episode.ending, episode.reward) == (Ending.ANSWERED, 0.95)


def test_an_action_over_the_ceiling_ends_the_episode_and_loads_nothing(small):
    episode, results = play(small, "ACTION: READ 0", "ACTION: READ 1")
    assert codes(results)[-1] == ("READ", "ceiling", 342, True)
    assert (list(episode.held), episode.ending, episode.reward) == (["0"], Ending.CEILING_EXCEEDED, -0.5)


def test_exactly_the_ceiling_is_allowed(small):
    _, results = play(small, "ACTION: READ 0", "ACTION: READ 2", rules=Rules(ceiling=462))
    assert codes(results)[-1] == ("READ", None, 462, False)
    _, results = play(small, "ACTION: READ 0", "ACTION: READ 2", rules=Rules(ceiling=461))
    assert codes(results)[-1] == ("READ", "ceiling", 342, True)


def test_refusals_come_before_the_ceiling(small):
    _, results = play(small, "ACTION: READ 0", "ACTION: READ 0", "ACTION: READ 99", "ACTION: DROP 0 1", "ACTION: COMPRESS S1 :: x")
    assert [r.error for r in results] == [None, "already_held", "unknown_chunk", "not_held", "not_held"]
    assert {r.used for r in results} == {342}


def test_a_number_too_long_for_python_is_an_unknown_chunk(small):
    _, results = play(small, "ACTION: READ " + "9" * 5000)
    assert results[0].error == "unknown_chunk"


def test_a_summary_is_cut_before_it_is_counted(small):
    episode, results = play(small, "ACTION: READ 0", "ACTION: COMPRESS 0 :: " + "word " * 300)
    assert results[-1].used == 120
    assert episode.held["S1"].text == " ".join(["word"] * 120)


def test_summaries_are_numbered_in_order_and_can_be_compressed_again(small):
    episode, _ = play(
        small, "ACTION: READ 3", "ACTION: COMPRESS 3 :: a", "ACTION: READ 3", "ACTION: COMPRESS S1 3 :: b c", "ACTION: READ 2"
    )
    assert {name: item.tokens for name, item in episode.held.items()} == {"S2": 2, "2": 120}


def test_a_summary_that_grows_over_the_ceiling_ends_the_episode(small):
    rules = Rules(ceiling=130)
    _, results = play(
        small, "ACTION: READ 2", "ACTION: COMPRESS 2 :: a", "ACTION: READ 2", "ACTION: COMPRESS S1 :: " + "w " * 50, rules=rules
    )
    assert codes(results)[-1] == ("COMPRESS", "ceiling", 121, True)


def test_the_budget_ends_an_episode_after_its_last_step(small):
    episode, results = play(small, *["nothing"] * 14)
    assert [r.done for r in results] == [False] * 13 + [True]
    assert (episode.ending, episode.reward) == (Ending.BUDGET_EXHAUSTED, -0.5)


def test_an_answer_on_the_last_step_counts(small):
    episode, _ = play(small, *["nothing"] * 13, "ACTION: ANSWER 4885866")
    assert episode.ending is Ending.ANSWERED
    assert episode.reward == pytest.approx(1 - 0.05 * 14 / 4)


def test_a_truncated_response_is_invalid_whatever_it_says(small):
    episode = NavigatorEpisode(small)
    result = episode.step("ACTION: READ 0", truncated=True)
    assert (result.kind, result.error, result.used) == (None, "parse", 0)
    assert "invalid: truncated" in episode.observe().dynamic


def test_after_the_end_nothing_can_be_asked(small):
    episode, _ = play(small, "ACTION: ANSWER 1")
    with pytest.raises(AssertionError):
        episode.observe()
    with pytest.raises(AssertionError):
        episode.step("ACTION: READ 0")


def test_only_actions_carried_out_are_counted(small):
    episode, _ = play(small, "ACTION: READ 0", "ACTION: READ 0", "ACTION: DROP 0", "ACTION: DROP 0", "x", "ACTION: ANSWER 5")
    metrics = episode.metrics()
    assert {key: metrics[key] for key in ("n_reads", "n_drop", "n_compress", "n_invalid", "steps_used", "steps_over_min")} == {
        "n_reads": 1,
        "n_drop": 1,
        "n_compress": 0,
        "n_invalid": 1,
        "steps_used": 6,
        "steps_over_min": 2,
    }


def test_fact_retention_is_the_share_of_bridges_that_summaries_keep(laptop):
    instance = next(i for i in laptop if i.n_hops == 3)
    one, two = instance.evidence[:2]
    episode, _ = play(
        instance,
        f"ACTION: READ {one.chunk_idx}",
        f"ACTION: COMPRESS {one.chunk_idx} :: {one.entity}: {one.field} = {one.value}",
        f"ACTION: READ {two.chunk_idx}",
        f"ACTION: COMPRESS {two.chunk_idx} S1 :: {two.value}x is not it",
    )
    assert episode.metrics()["fact_retention"] == 0.5


def test_a_bridge_carried_by_a_summary_counts_until_the_chunk_it_leads_to_is_read(deep):
    one, two = deep[0].evidence[:2]
    read, keep, lose = f"ACTION: READ {one.chunk_idx}", f"ACTION: COMPRESS {one.chunk_idx} :: {one.value}", "ACTION: COMPRESS S1 :: gone"
    lost, _ = play(deep[0], read, keep, lose)
    used, _ = play(deep[0], read, keep, f"ACTION: READ {two.chunk_idx}", lose)
    assert (lost.metrics()["fact_retention"], used.metrics()["fact_retention"]) == (0.5, 1.0)


def test_nothing_compressed_has_no_retention(laptop):
    episode, _ = play(laptop[0], f"ACTION: READ {laptop[0].evidence[0].chunk_idx}")
    assert (episode.metrics()["compressed"], episode.metrics()["fact_retention"]) == (False, None)


def test_a_perfect_policy_keeps_every_bridge(deep):
    for instance in deep:
        episode, oracle = NavigatorEpisode(instance), Oracle(0)
        while episode.ending is None:
            episode.step(oracle(episode))
        assert (episode.metrics()["compressed"], episode.metrics()["fact_retention"]) == (True, 1.0)


def test_a_known_distractor_is_named_when_it_is_answered(laptop):
    instance = next(i for i in laptop if i.distractors)
    wrong = instance.distractors[0]
    episode, _ = play(instance, f"ACTION: ANSWER {wrong.wrong_answer}")
    assert episode.metrics()["distractor_capture"] in {d.kind for d in instance.distractors if d.wrong_answer == wrong.wrong_answer}


RESPONSES = st.lists(
    st.sampled_from(
        ["READ 0", "READ 1", "READ 2", "READ 3", "DROP 2", "DROP S1", "DROP S2 3", "COMPRESS 3 :: a b c", "COMPRESS 2 3 :: d", "x"]
        + [
            f"COMPRESS {ids} :: {text}"
            for ids in ("0", "S1 2", "S2")
            for text in ("a_b" * 99, "日本" * 99, "w " * 99, "\u2003.\u2003" * 99)
        ]
    )
    | st.text(max_size=30),
    max_size=20,
)


def actions_counted(episode):
    return [episode.metrics()[name] for name in ("n_reads", "n_compress", "n_drop", "answer", "fact_retention")]


def changed_words(before, after):
    """Ledger lines of a brief prompt as fields, those that differ."""
    old, new = (dynamic.split("\n", 1) for dynamic in (before, after))
    assert new[1] == old[1], "the working context differs"
    return {b.partition(" ")[0] for a, b in zip(old[0].split(" · "), new[0].split(" · "), strict=True) if a != b}


@given(responses=RESPONSES)
@settings(max_examples=150)
def test_used_is_the_sum_of_what_is_held_and_a_step_in_error_changes_nothing_but_its_count_and_the_last_result(responses, small_instance):
    episode = NavigatorEpisode(small_instance)
    for response in responses:
        before, counts, shown, steps = dict(episode.held), actions_counted(episode), episode.observe(), episode.steps_used
        result = episode.step(response)
        assert (episode.used, episode.steps_used) == (result.used, steps + 1)
        check_accounting(episode)
        if result.error is not None:
            assert (dict(episode.held), actions_counted(episode)) == (before, counts)
        if result.done:
            return
        now = episode.observe()
        assert (now.system, now.static) == (shown.system, shown.static)
        if result.error is not None:
            assert {"step"} <= changed_words(shown.dynamic, now.dynamic) <= {"step", "last"}


@pytest.fixture(scope="module")
def small_instance(request):
    return request.getfixturevalue("laptop")[0]
