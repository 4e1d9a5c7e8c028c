import json

import pytest

from env.navigator.generate import instances
from env.navigator.instance import read_rows, to_row, write_rows
from env.navigator.settings import get_profile
from rollout.engines.scripted import ScriptedEngine
from rollout.loop import Loop
from train import manifest
from train.baselines import gate, run_baselines, table, undecided
from train.cli import main
from train.config import load_config
from train.engines import Runner

WIDE = ["engine.max_model_len=100000"]
"""The scripted engine's tokens are bytes."""


@pytest.fixture(scope="module")
def rows():
    return [to_row(instance) for instance in instances(get_profile("laptop"), "id_test", 0, 24)]


@pytest.fixture
def file(tmp_path, rows):
    write_rows(tmp_path / "id.jsonl", rows)
    return tmp_path / "id.jsonl"


def measure(file, out, respond, settings=WIDE, **options):
    with Loop() as loop:
        runner = Runner(ScriptedEngine(respond), loop, 4)
        return run_baselines(load_config(None, settings), instances=[file], out=out, model="scripted", runner=runner, **options)


def knows(rows, when):
    """Answers right when `when(prompt, row)` holds, in the style that is asked for."""

    def respond(prompt, seed):
        row = next(row for row in rows if f"Question: {row['question']}" in prompt)
        answer = row["answer"] if when(prompt, row) else "1"
        return f"THOUGHT: so.\nACTION: ANSWER {answer}" if "ACTION" in prompt else answer

    return respond


def with_document(prompt, row):
    return all(chunk["text"] in prompt for chunk in row["chunks"])


def command(file, out, *more):
    return main(["baselines", "--instances", str(file), "--out", str(out), *more])


def leaking_question(row):
    return row | {"question": row["question"].replace("?", f" ({row['answer']})?")}


def leaking_chunk(row):
    """The answer chunk holds the one entry that is asked for."""
    last = row["evidence"][-1]
    chunk = row["chunks"][last["chunk_idx"]]
    line = next(line for line in chunk["text"].split("\n") if line.startswith(f"{last['entity']} — "))
    alone = chunk | {"text": line, "entity_names": [last["entity"]]}
    return row | {"chunks": [alone if c is chunk else c for c in row["chunks"]]}


def test_a_sound_environment_is_valid_and_the_file_holds_what_was_printed(file, tmp_path, capsys):
    assert command(file, tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert out.endswith("\nenvironment valid\n")
    results = json.loads((tmp_path / "out" / "baselines.json").read_text())
    assert out == table(results) + "\nenvironment valid\n"
    assert results["splits"]["id_test"]["mechanical"]["full-document"] == {
        "n": 24,
        "accuracy": 1.0,
        "interval": pytest.approx([0.8620, 1], abs=1e-4),
    }
    assert results["splits"]["id_test"]["mechanical"]["single-chunk"]["accuracy"] == pytest.approx(1 / 3, abs=0.01)
    assert manifest.read(tmp_path / "out", "baselines.manifest")["status"] == "finished"


def test_n_bounds_the_instances_of_each_file(file, tmp_path):
    assert (
        run_baselines(load_config(None), instances=[file], out=tmp_path / "o", n=3)["splits"]["id_test"]["mechanical"]["chance"]["n"] == 3
    )


def test_a_question_that_holds_the_answer_is_caught(rows, tmp_path, capsys):
    write_rows(tmp_path / "leak.jsonl", map(leaking_question, rows))
    assert command(tmp_path / "leak.jsonl", tmp_path / "out") == 1
    out, err = capsys.readouterr()
    assert "id_test, mechanical: no-read 1.000 [0.862, 1.000] n=24 is above chance 0.164: the answer shows before any read" in out
    assert "environment valid" not in out
    assert err == "environment not valid\n"


def test_a_chunk_that_gives_everything_away_is_caught(rows, tmp_path):
    write_rows(tmp_path / "leak.jsonl", map(leaking_chunk, rows))
    results = run_baselines(load_config(None), instances=[tmp_path / "leak.jsonl"], out=tmp_path / "out")
    (complaint,) = gate(results)
    assert complaint.startswith(
        "id_test, mechanical: single-chunk 1.000 [0.862, 1.000] n=24 is not clearly below full-document 1.000 [0.862, 1.000] n=24"
    )


def test_a_model_that_reads_is_measured_in_both_styles(rows, file, tmp_path):
    results = measure(file, tmp_path / "out", knows(rows, with_document))
    readers = results["splits"]["id_test"]
    found = {(reader, name): readers[reader][name]["accuracy"] for reader in ("answer-only", "reasoning") for name in readers[reader]}
    assert found == {
        ("answer-only", "no-read"): 0.0,
        ("answer-only", "single-chunk"): 0.0,
        ("answer-only", "full-document"): 1.0,
        ("reasoning", "no-read"): 0.0,
        ("reasoning", "single-chunk"): 0.0,
        ("reasoning", "full-document"): 1.0,
    }
    assert (gate(results), undecided(results)) == ([], [])
    kept = [row for _, row in read_rows(tmp_path / "out" / "id_test.full-document.reasoning.jsonl")]
    assert [row["correct"] for row in kept] == [True] * 24
    assert kept[0]["steps"][0]["response"] == f"THOUGHT: so.\nACTION: ANSWER {rows[0]['answer']}"


def test_a_model_that_knows_the_answers_unread_is_caught(rows, file, tmp_path):
    complaints = gate(measure(file, tmp_path / "out", knows(rows, lambda prompt, row: True)))
    assert [complaint.split(" ")[2] for complaint in complaints] == ["no-read", "single-chunk", "no-read", "single-chunk"]
    assert all(complaint.startswith(("id_test, answer-only: ", "id_test, reasoning: ")) for complaint in complaints)


def test_a_model_at_the_floor_judges_nothing(rows, file, tmp_path):
    results = measure(file, tmp_path / "out", knows(rows, lambda prompt, row: False))
    assert gate(results) == []
    assert undecided(results) == [
        f"id_test, {style}: cannot judge single-chunk by this reader: full-document 0.000 [0.000, 0.138] n=24 is itself at the floor, "
        "chance 0.164"
        for style in ("answer-only", "reasoning")
    ]


def test_a_document_that_does_not_fit_is_never_cut(rows, file, tmp_path):
    prompts = []

    def respond(prompt, seed):
        prompts.append(prompt)
        return "1"

    results = measure(file, tmp_path / "out", respond, ["engine.max_model_len=5000"])
    numbers = results["splits"]["id_test"]["answer-only"]["full-document"]
    assert (numbers["n"], numbers["accuracy"], numbers["does_not_fit"]["max_model_len"]) == (0, None, 5000)
    assert numbers["does_not_fit"]["prompt_tokens"] > max(len(chunk["text"]) for row in rows for chunk in row["chunks"]) * 10
    assert "does not fit: " in table(results)
    assert not any(with_document(prompt, row) for prompt in prompts for row in rows)
    assert undecided(results)[0].startswith("id_test, answer-only: cannot judge single-chunk by this reader: full-document does not fit: ")


def test_where_nobody_can_judge_the_environment_is_not_called_valid(rows, tmp_path):
    write_rows(tmp_path / "foreign.jsonl", [row | {"question": "Quel est le badge ?"} for row in rows])
    results = run_baselines(load_config(None), instances=[tmp_path / "foreign.jsonl"], out=tmp_path / "out")
    assert gate(results) == [
        "id_test: nobody can judge single-chunk against full-document (mechanical: full-document is in a grammar of another system)"
    ]


def test_a_reply_of_the_engine_that_failed_counts_as_wrong(rows, file, tmp_path):
    def broken(prompt, seed):
        raise RuntimeError("bad batch")

    numbers = measure(file, tmp_path / "out", broken)["splits"]["id_test"]["reasoning"]["no-read"]
    assert {k: numbers[k] for k in ("n", "accuracy", "answered", "failures")} == {"n": 24, "accuracy": 0.0, "answered": 0, "failures": 24}


def test_a_real_model_is_played_by_the_command(file, tiny_model_dir, tmp_path, capsys):
    more = ["--model", str(tiny_model_dir), "--n", "2", "--set", "engine.kind=transformers", "--set", "engine.max_model_len=600"]
    assert command(file, tmp_path / "out", *more) == 1  # two instances are too few to tell
    out = capsys.readouterr().out
    assert "answer-only no-read" in out
    (row,) = [row for _, row in read_rows(tmp_path / "out" / "id_test.no-read.answer-only.jsonl")][:1]
    assert 0 < row["steps"][0]["completion_tokens"] <= 24
    assert "reasoning full-document" in out
    assert "does not fit" in out
