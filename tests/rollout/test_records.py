import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env.errors import InputError
from env.navigator.episode import NavigatorEpisode
from env.navigator.generate import instances
from env.navigator.instance import dump_row, write_rows
from env.navigator.policies import POLICIES
from env.navigator.settings import get_profile
from env.protocol import StepResult
from rollout.engine import FinishReason
from rollout.records import Step, Trajectory, from_row, read_trajectories, to_row
from rollout.scheduler import play

TRAJECTORY = Trajectory(
    instance_id="dev-1",
    seed=7,
    reward=0.95,
    ending="answered",
    steps=(
        Step(
            response="ACTION: READ 3",
            result=StepResult(kind="READ", ids=("3",), ok=False, error="already_held", used=40, done=False),
            prompt_ids=[1, 2, 3],
            completion_ids=[4, 5],
            logprobs=[-0.5, -0.25],
            finish_reason=FinishReason.LENGTH,
            version=2,
            cached_tokens=2,
        ),
        Step(
            response="?",
            result=StepResult(kind=None, ids=(), ok=False, error="parse", used=40, done=True),
            prompt_ids=[],
            completion_ids=[],
            logprobs=[],
        ),
    ),
    info={"split": "dev", "n_hops": 2},
    metrics={"correct": True, "answer": None},
)


def test_a_trajectory_comes_back_from_its_file_as_it_was(tmp_path):
    failed = Trajectory(instance_id="dev-2", seed=1, reward=0, ending=None, steps=(), error="RuntimeError: lost")
    path = tmp_path / "t.jsonl.gz"
    write_rows(path, [to_row(t, tokens=True) for t in (TRAJECTORY, failed)])
    assert list(read_trajectories(path)) == [TRAJECTORY, failed]


def test_without_tokens_everything_but_the_tokens_comes_back():
    row = to_row(TRAJECTORY)
    assert (row["steps"][0]["prompt_tokens"], row["steps"][0]["completion_tokens"]) == (3, 2)
    back = from_row(row)
    assert (back.steps[0].completion_ids, back.steps[0].logprobs) == ((), ())
    assert (back.steps[0].result, back.info, back.metrics) == (TRAJECTORY.steps[0].result, TRAJECTORY.info, TRAJECTORY.metrics)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "field 'format' is 2, this program reads 1"),
        ({"reward": "high"}, "field 'reward' is \"high\", expected int or float"),
        ({"reward": True}, "field 'reward' is true, expected int or float"),
        ({"ending": "won"}, 'field \'ending\' is "won", expected one of null, "answered"'),
        ({"metric_keys": ["correct", "style"]}, "field 'style' is missing"),
        ({"steps": [3]}, "steps[0] is 3, expected an object"),
        ({"steps": [to_row(TRAJECTORY)["steps"][0] | {"used": None}]}, "steps[0]: field 'used' is null, expected int"),
        ({"steps": [to_row(TRAJECTORY, tokens=True)["steps"][0] | {"logprobs": [0.0]}]}, "steps[0]: 2 completion_ids but 1 logprobs"),
    ],
)
def test_a_wrong_row_is_named_by_file_line_and_field(tmp_path, change, message):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(to_row(TRAJECTORY)) + "\n" + json.dumps(to_row(TRAJECTORY) | change) + "\n")
    with pytest.raises(InputError) as error:
        list(read_trajectories(path))
    assert str(error.value).startswith(f"{path}:2: ")
    assert message in str(error.value)


def test_a_line_cut_in_half_is_named(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(to_row(TRAJECTORY)) + "\n" + json.dumps(to_row(TRAJECTORY))[:40])
    with pytest.raises(InputError, match=r"t\.jsonl:2: not JSON"):
        list(read_trajectories(path))


def test_an_environment_may_not_name_a_fact_like_a_field():
    with pytest.raises(AssertionError, match="name of another field"):
        to_row(Trajectory(instance_id="i", seed=0, reward=0.0, ending=None, steps=(), info={"seed": 3}))


INSTANCE = next(instances(get_profile("laptop"), "dev", 0, 1))


def spoken(responses):
    """A policy that says these, then nothing."""
    told = iter(responses)
    return lambda episode: next(told, "")


@given(st.lists(st.sampled_from(["ACTION: READ 0", "ACTION: READ 1", "ACTION: DROP 0", "ACTION: COMPRESS 0 :: a"]) | st.text(max_size=20)))
@settings(max_examples=60)
def test_the_responses_of_a_recorded_trajectory_give_the_same_bytes_again(responses):
    first = dump_row(to_row(play(NavigatorEpisode(INSTANCE), spoken(responses))))
    recorded = from_row(json.loads(first))
    assert dump_row(to_row(play(NavigatorEpisode(INSTANCE), spoken([step.response for step in recorded.steps])))) == first


@pytest.mark.parametrize("name", ["oracle", "random", "exploit:nested-actions", "exploit:copy-white-space", "exploit:smuggle-ledger"])
def test_a_policy_that_is_replayed_from_its_record_gives_the_same_bytes(name):
    first = dump_row(to_row(play(NavigatorEpisode(INSTANCE), POLICIES[name](3))))
    recorded = from_row(json.loads(first))
    assert dump_row(to_row(play(NavigatorEpisode(INSTANCE), spoken([step.response for step in recorded.steps])))) == first
