from pathlib import Path

import pytest

from env.errors import EngineDied, InputError
from env.navigator.generate import generate_file
from env.navigator.instance import read_rows
from env.navigator.settings import get_profile
from rollout.engines.scripted import ScriptedEngine
from rollout.loop import Loop
from train.config import Config
from train.engines import Runner
from train.evaluate import run_evaluation, summarize


@pytest.fixture
def parts(tmp_path):
    """(model folder, instance file of four, output folder)."""
    model, file = tmp_path / "model", tmp_path / "id.jsonl"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"first weights")
    generate_file(get_profile("laptop"), "id_test", 0, 4, file)
    return model, file, tmp_path / "out"


def evaluate(parts, respond, adapter=None):
    model, file, out = parts
    with Loop() as loop:
        runner = Runner(ScriptedEngine(respond), loop, 1)
        return run_evaluation(Config(), policy=str(model), adapter=adapter, instances=[file], out=out, runner=runner)


class Answers:
    """Answers every episode at once with `text`; the engine dies at the call number `dies_at`."""

    def __init__(self, text, dies_at=None):
        self.text, self.dies_at, self.calls = text, dies_at, 0

    def __call__(self, prompt, seed):
        self.calls += 1
        if self.calls == self.dies_at:
            raise EngineDied("the engine stopped")
        return f"ACTION: ANSWER {self.text}"


def answers(out: Path):
    return [row["answer"] for _, row in read_rows(out / "trajectories.jsonl")]


def test_episodes_finished_before_the_engine_died_are_kept(parts):
    with pytest.raises(EngineDied):
        evaluate(parts, Answers("old", dies_at=3))
    rest = Answers("new")
    assert evaluate(parts, rest)["splits"]["id_test"]["n"] == 4
    assert (rest.calls, answers(parts[2])) == (2, ["old", "old", "new", "new"])


@pytest.mark.parametrize("changed", ["model", "adapter", "instances"])
def test_episodes_of_other_weights_or_instances_under_the_same_path_are_played_again(parts, tmp_path, changed):
    model, file, out = parts
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_bytes(b"first")
    with pytest.raises(EngineDied):
        evaluate(parts, Answers("old", dies_at=3), adapter)
    target = {"model": model / "model.safetensors", "adapter": adapter / "adapter_model.safetensors", "instances": file}[changed]
    target.write_bytes(target.read_bytes() + b"\n")
    evaluate(parts, Answers("new"), adapter)
    assert answers(out) == ["new"] * 4


def test_an_instance_given_twice_is_the_users_mistake(parts):
    _, file, out = parts
    with pytest.raises(InputError, match="laptop-id_test-000000 comes twice"):
        run_evaluation(Config(), policy="no-read", adapter=None, instances=[file, file], out=out)


def test_an_episode_that_the_engine_failed_counts_as_wrong_and_is_counted(parts):
    def broken(prompt, seed):
        raise RuntimeError("bad batch")

    numbers = evaluate(parts, broken)["splits"]["id_test"]
    assert (numbers["n"], numbers["accuracy"], numbers["failures"], sum(numbers["endings"].values())) == (4, 0.0, 4, 0.0)
    assert next(read_rows(parts[2] / "trajectories.jsonl"))[1]["failure"] == "RuntimeError: bad batch"


def test_splits_are_summarized_apart_even_where_their_hops_meet():
    row = {"n_hops": 3, "reward": 0.0, "ending": "answered", "failure": None, "steps_used": 4, "steps_over_min": 0}
    row |= {"n_compress": 0, "n_invalid": 0, "fact_retention": None, "distractor_capture": None}
    found = summarize([row | {"split": "id_test", "correct": True}, row | {"split": "ood_test", "correct": False}])
    assert [found[split]["by_hops"]["3"]["accuracy"] for split in ("id_test", "ood_test")] == [1.0, 0.0]
