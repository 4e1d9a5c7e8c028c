import json
from dataclasses import replace

import pytest

from env.errors import InputError
from env.navigator.environment import NavigatorEnvironment
from env.navigator.instance import to_row, write_rows
from env.navigator.replay import replay, replay_row


def test_a_replayed_row_tells_every_step(small):
    assert replay_row(small, ["ACTION: READ 3", "x", "ACTION: ANSWER 4885866", "ACTION: READ 0"]) == {
        "instance_id": "small",
        "steps": [
            {"kind": "READ", "ids": ["3"], "ok": True, "error": None, "used": 50, "done": False},
            {"kind": None, "ids": [], "ok": False, "error": "parse", "used": 50, "done": False},
            {"kind": "ANSWER", "ids": [], "ok": True, "error": None, "used": 50, "done": True},
        ],
        "reward": 0.9625,
        "done": True,
        "ending": "answered",
        "correct": True,
        "answer": "4885866",
        "steps_used": 3,
        "n_reads": 1,
        "n_compress": 0,
        "n_drop": 0,
        "n_invalid": 1,
    }


def test_an_episode_that_still_runs_has_no_reward(small):
    row = replay_row(small, ["ACTION: READ 3"])
    assert (row["reward"], row["done"], row["ending"], row["answer"]) == (None, False, None, None)


def test_files_are_replayed_row_by_row_and_the_same_bytes_come_twice(tmp_path, small):
    write_rows(tmp_path / "i.jsonl", [to_row(small)])
    write_rows(tmp_path / "a.jsonl", [{"instance_id": "small", "responses": ["ACTION: READ 0"]}] * 2)
    assert replay(tmp_path / "i.jsonl", tmp_path / "a.jsonl", tmp_path / "r.jsonl") == 2
    first = (tmp_path / "r.jsonl").read_bytes()
    replay(tmp_path / "i.jsonl", tmp_path / "a.jsonl", tmp_path / "r.jsonl")
    assert (tmp_path / "r.jsonl").read_bytes() == first
    assert json.loads(first.split(b"\n")[0])["steps"][0]["used"] == 342


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"instance_id": "other", "responses": []}, "instance 'other' is not in"),
        ({"responses": []}, "expected an object with a text 'instance_id'"),
        ({"instance_id": "small", "responses": "x"}, "field 'responses' must be a list of texts"),
    ],
)
def test_a_bad_row_names_its_line(tmp_path, small, row, message):
    write_rows(tmp_path / "i.jsonl", [to_row(small)])
    write_rows(tmp_path / "a.jsonl", [{"instance_id": "small", "responses": []}, row])
    with pytest.raises(InputError, match=r"a\.jsonl:2: ") as error:
        replay(tmp_path / "i.jsonl", tmp_path / "a.jsonl", tmp_path / "r.jsonl")
    assert message in str(error.value)
    assert not (tmp_path / "r.jsonl").exists()


def test_an_instance_that_is_there_twice_is_refused(tmp_path, small):
    write_rows(tmp_path / "i.jsonl", [to_row(small)] * 2)
    write_rows(tmp_path / "a.jsonl", [])
    with pytest.raises(InputError, match=r"i\.jsonl:2: instance 'small' is there twice"):
        replay(tmp_path / "i.jsonl", tmp_path / "a.jsonl", tmp_path / "r.jsonl")


def test_instances_that_share_an_id_keep_their_own_question(small):
    environment = NavigatorEnvironment()
    other = replace(small, question="another?")
    assert "another?" not in environment.episode(small).observe().static
    assert "another?" in environment.episode(other).observe().static
