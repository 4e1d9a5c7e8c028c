import json

import pytest

from train.config import Config
from train.run import Chain


def go(folder, *, first="x", second="y", fail=False):
    """Names of the stages that ran: `a`, and `b` after it."""
    ran = []

    def work(name):
        ran.append(name)
        if fail and name == "b":
            raise RuntimeError("boom")
        return {"made": name}

    chain = Chain(Config(), folder)
    chain.stage("a", {"value": first}, (), lambda: work("a"))
    chain.stage("b", {"value": second}, ("a",), lambda: work("b"))
    assert set(chain.seconds()) == {"a", "b"}
    return ran


def test_a_finished_stage_is_skipped_and_says_so(tmp_path, capsys):
    assert go(tmp_path) == ["a", "b"]
    assert json.loads((tmp_path / "b.json").read_text())["facts"] == {"made": "b"}
    assert go(tmp_path) == []
    assert capsys.readouterr().err.splitlines()[-2:] == ["a: done before, skipped", "b: done before, skipped"]


def test_a_changed_setting_redoes_its_stage_and_what_depends_on_it(tmp_path):
    go(tmp_path)
    assert go(tmp_path, second="z") == ["b"]
    assert go(tmp_path, first="z", second="z") == ["a", "b"]


def test_a_stage_that_failed_is_done_again(tmp_path):
    with pytest.raises(RuntimeError, match="boom"):
        go(tmp_path, fail=True)
    assert go(tmp_path) == ["b"]
