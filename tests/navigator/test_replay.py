import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.navigator.instance import dump_row, from_row
from env.navigator.replay import replay_row

CASES = json.loads(Path(__file__).with_name("cases_replay.json").read_text(encoding="utf-8"))
INSTANCES = {row["id"]: from_row(row) for row in CASES["instances"]}


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_a_script_gets_the_recorded_answers(case):
    assert dump_row(replay_row(INSTANCES[case["instance"]], case["responses"])) == dump_row(case["expected"])


@given(
    name=st.sampled_from(sorted(INSTANCES)),
    responses=st.lists(
        st.sampled_from(["ACTION: READ 0", "ACTION: READ 2", "ACTION: DROP 0", "ACTION: COMPRESS 2 :: Cedar: Ada", "ACTION: ANSWER 1,250"])
        | st.text(max_size=20),
        max_size=12,
    ),
)
def test_the_same_responses_give_the_same_bytes_and_as_many_steps_as_were_used(name, responses):
    first = replay_row(INSTANCES[name], responses)
    played = responses[: first["steps_used"]]
    assert len(first["steps"]) == first["steps_used"] <= len(responses)
    assert dump_row(replay_row(INSTANCES[name], played)) == dump_row(first)
