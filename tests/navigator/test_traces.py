import re

import pytest

from env.errors import InputError
from env.navigator.episode import NavigatorEpisode
from env.navigator.instance import to_row, write_rows
from env.navigator.policies import Oracle
from env.navigator.traces import known_instances, read_traces, trace
from rollout.records import to_row as trajectory_row
from rollout.scheduler import play

SCRIPT = ["ACTION: READ 1", "ACTION: COMPRESS 1 :: Ada: Friend = Bo", "nonsense", "ACTION: READ 99", "ACTION: ANSWER 4210"]


def traces(tmp_path, known, *rows):
    write_rows(tmp_path / "t.jsonl", rows)
    return list(read_traces(tmp_path / "t.jsonl", known))


def test_a_step_shows_what_it_took_in_and_what_it_gave_up(village, tmp_path):
    [found] = traces(tmp_path, {"village": village}, {"instance_id": "village", "responses": [*SCRIPT, "ACTION: READ 2"]})
    assert [step.did for step in found.steps] == ["READ", "COMPRESS", None, None, "ANSWER"]
    assert [step.replaced for step in found.steps] == [{}, {"1": village.chunks[1].text}, {}, {}, {}]
    assert [step.summary.text if step.summary else None for step in found.steps] == [None, "Ada: Friend = Bo", None, None, None]
    assert (found.reads, found.episode.correct) == ([1], True)


def test_a_trajectory_and_its_bare_responses_are_the_same_episode(laptop, tmp_path):
    row = trajectory_row(play(NavigatorEpisode(laptop[0]), Oracle(0)))
    bare = {"instance_id": laptop[0].id, "responses": [step["response"] for step in row["steps"]]}
    one, other = traces(tmp_path, {laptop[0].id: laptop[0]}, row, bare)
    assert one.steps == other.steps
    assert (one.agrees, one.episode.reward, len(one.steps)) == (True, 0.95, laptop[0].min_steps)


def test_a_truncated_step_is_invalid_again(village, tmp_path):
    steps = [{"response": "ACTION: READ 1", "finish_reason": reason} for reason in ("length", "stop")]
    [found] = traces(tmp_path, {"village": village}, {"instance_id": "village", "steps": steps})
    assert [step.result.error for step in found.steps] == ["parse", None]


@pytest.mark.parametrize(
    ("recorded", "agrees"),
    [({"reward": 0.9375}, True), ({"reward": 0.95}, False), ({}, True), ({"reward": 0.0, "failure": "bad batch"}, True)],
)
def test_an_episode_that_now_earns_another_reward_is_marked(village, tmp_path, recorded, agrees):
    row = {"instance_id": "village", "steps": [{"response": response} for response in SCRIPT], **recorded}
    [found] = traces(tmp_path, {"village": village}, row)
    assert (found.episode.reward, found.agrees) == (0.9375, agrees)


def test_responses_that_stop_early_leave_the_episode_without_an_end(village):
    found = trace(village, [("ACTION: READ 1", False)])
    assert (found.episode.ending, found.episode.reward) == (None, None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([], "expected an object with a text 'instance_id' and a list 'steps' or 'responses'"),
        ({"instance_id": "other", "responses": []}, "instance 'other' is not in the instance files; give those it was played on"),
        ({"instance_id": "village"}, "field 'steps' must be a list of objects with a text 'response' (or 'responses' a list of texts)"),
        ({"instance_id": "village", "steps": [{"kind": "READ"}]},
         "field 'steps' must be a list of objects with a text 'response' (or 'responses' a list of texts)"),
        ({"instance_id": "village", "responses": [1]}, "field 'responses' must be a list of texts"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_played_is_named(village, tmp_path, row, reason):
    with pytest.raises(InputError, match=re.escape(f"t.jsonl:2: {reason}") + "$"):
        traces(tmp_path, {"village": village}, {"instance_id": "village", "responses": []}, row)


def test_instances_of_several_files_are_known_by_id(village, laptop, tmp_path):
    write_rows(tmp_path / "a.jsonl", [to_row(village)])
    write_rows(tmp_path / "b.jsonl.gz", [to_row(laptop[0])])
    assert known_instances([tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"]) == {"village": village, laptop[0].id: laptop[0]}
    with pytest.raises(InputError, match="a.jsonl:1: instance 'village' is there twice; a response could mean either$"):
        known_instances([tmp_path / "a.jsonl", tmp_path / "a.jsonl"])


def test_evidence_in_a_chunk_that_is_not_there_is_an_error(village, tmp_path):
    row = to_row(village)
    row["evidence"][1]["chunk_idx"] = 8
    write_rows(tmp_path / "a.jsonl", [row])
    with pytest.raises(InputError, match=r"a.jsonl:1: field 'evidence'\[1\]: field 'chunk_idx' is 8, the last chunk is 7$"):
        known_instances([tmp_path / "a.jsonl"])
