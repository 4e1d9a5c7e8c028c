import json
from html.parser import HTMLParser

import pytest

from env.errors import InputError
from env.navigator.generate import generate_file
from env.navigator.instance import read_rows, write_rows
from env.navigator.settings import get_profile
from train.config import Config
from train.evaluate import partial_key, run_evaluation, summarize
from train.report import write_report
from train.results import collect_results, results_table


def row(name, *, correct, split="id_test", hops=2, ending="answered", reward=0.0, retention=None, steps=4):
    return {
        "instance_id": name,
        "split": split,
        "n_hops": hops,
        "correct": correct,
        "reward": reward,
        "ending": ending,
        "failure": None,
        "steps_used": steps,
        "steps_over_min": steps - 4,
        "n_compress": 1,
        "n_invalid": 1,
        "fact_retention": retention,
        "distractor_capture": None if correct else "near_miss_value",
    }


ROWS = [
    row("a", correct=True, reward=0.9, retention=1.0),
    row("b", correct=False, hops=3, retention=0.5, steps=8),
    row("c", correct=False, ending="budget_exhausted", reward=-0.5, steps=14),
    row("d", correct=True, reward=0.95),
]


def test_a_summary_counts_episodes_not_steps():
    numbers = summarize(ROWS)["id_test"]
    assert {k: numbers[k] for k in ("n", "accuracy", "reward", "steps_over_min", "fact_retention", "distractor_capture")} == {
        "n": 4,
        "accuracy": 0.5,
        "reward": pytest.approx(0.3375),
        "steps_over_min": 3.5,
        "fact_retention": 0.75,
        "distractor_capture": 0.5,
    }
    assert numbers["invalid_share"] == pytest.approx(4 / 30)
    assert numbers["endings"] == {"answered": 0.75, "ceiling_exceeded": 0.0, "budget_exhausted": 0.25}
    assert numbers["interval"] == pytest.approx([0.15003899, 0.84996101])
    assert {hops: own["n"] for hops, own in numbers["by_hops"].items()} == {"2": 3, "3": 1}


def test_a_retention_that_nobody_could_have_is_null():
    assert summarize([row("a", correct=True)])["id_test"]["fact_retention"] is None


@pytest.fixture
def instances(tmp_path):
    generate_file(get_profile("laptop"), "id_test", 0, 4, tmp_path / "id.jsonl")
    generate_file(get_profile("laptop"), "ood_test", 0, 2, tmp_path / "ood.jsonl")
    return [tmp_path / "id.jsonl", tmp_path / "ood.jsonl"]


def evaluate(tmp_path, instances, policy="oracle", **options):
    return run_evaluation(Config(), policy=policy, adapter=None, instances=instances, out=tmp_path / policy, **options)


def test_reference_policies_are_evaluated_without_an_engine(tmp_path, instances):
    summary = evaluate(tmp_path, instances)
    assert {split: (s["n"], s["accuracy"], s["steps_over_min"]) for split, s in summary["splits"].items()} == {
        "id_test": (4, 1.0, 0.0),
        "ood_test": (2, 1.0, 0.0),
    }
    rows = [r for _, r in read_rows(tmp_path / "oracle" / "trajectories.jsonl")]
    assert [r["instance_id"] for r in rows][:2] == ["laptop-id_test-000000", "laptop-id_test-000001"]
    assert rows[0]["steps"][0]["response"].startswith("THOUGHT: need Lead of ")
    assert json.loads((tmp_path / "oracle" / "summary.json").read_text()) == summary


def test_the_first_n_of_each_file(tmp_path, instances):
    assert [s["n"] for s in evaluate(tmp_path, instances, n=1)["splits"].values()] == [1, 1]


def test_a_stopped_evaluation_goes_on_and_plays_nothing_twice(tmp_path, instances):
    evaluate(tmp_path, instances)
    folder = tmp_path / "oracle"
    whole = (folder / "trajectories.jsonl").read_text().splitlines()
    key = partial_key(Config(), policy="oracle", adapter=None, instances=instances)
    marked = json.dumps(json.loads(whole[0]) | {"reward": 0.123})
    (folder / "partial.jsonl").write_text(f"{key}\n{marked}\n{whole[1][:40]}")
    evaluate(tmp_path, instances)
    rewards = [r["reward"] for _, r in read_rows(folder / "trajectories.jsonl")]
    assert rewards == [0.123, *[json.loads(line)["reward"] for line in whole[1:]]]
    assert not (folder / "partial.jsonl").exists()


def test_rows_of_other_settings_are_not_reused(tmp_path, instances):
    evaluate(tmp_path, instances)
    folder = tmp_path / "oracle"
    first = json.loads((folder / "trajectories.jsonl").read_text().splitlines()[0])
    (folder / "partial.jsonl").write_text("otherkey\n" + json.dumps(first | {"reward": 0.123}) + "\n")
    evaluate(tmp_path, instances)
    assert next(iter(read_rows(folder / "trajectories.jsonl")))[1]["reward"] == first["reward"]


def test_an_empty_file_is_the_users_mistake(tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(InputError, match="no instance to evaluate on"):
        evaluate(tmp_path, [tmp_path / "none.jsonl"])


@pytest.fixture
def run_folder(tmp_path):
    for name, rights in {"grpo": [1, 1, 1, 0], "sft": [1, 0, 0, 0]}.items():
        rows = [row(f"x{i}", correct=bool(r), reward=float(r)) for i, r in enumerate(rights)]
        write_rows(tmp_path / "eval" / name / "trajectories.jsonl", rows)
        (tmp_path / "eval" / name / "summary.json").write_text(json.dumps({"splits": summarize(rows)}))
    (tmp_path / "grpo").mkdir()
    lines = [{"step": s, "reward": s / 10, "kl": 0.0} for s in (1, 2, 3)] + [{"alarm": "<script>alert(1)</script>"}]
    (tmp_path / "grpo" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    results = collect_results(tmp_path, {"grpo": 12.0})
    (tmp_path / "results.json").write_text(json.dumps(results))
    return tmp_path


def test_results_pair_policies_by_instance(run_folder):
    results = json.loads((run_folder / "results.json").read_text())
    assert results["policies"]["grpo"]["id"]["accuracy"] == 0.75
    assert set(results["policies"]["sft"]["id"]) == {"n", "accuracy", "interval", "reward"}
    comparison = results["comparisons"]["grpo_vs_sft"]["id"]
    assert (comparison["n"], comparison["difference"], comparison["gained"], comparison["lost"], comparison["p_value"]) == (
        4,
        0.5,
        2,
        0,
        0.5,
    )
    assert results["seconds"] == {"grpo": 12.0}


def test_the_table_says_plainly_when_no_difference_is_shown(run_folder):
    lines = results_table(json.loads((run_folder / "results.json").read_text())).split("\n")
    assert lines[1].split() == ["grpo", "0.750", "[0.301,", "0.954]", "n=4", "-"]
    assert lines[-1].startswith("grpo vs sft, ID: +0.500 [")
    assert lines[-1].endswith("+2 -0 of 4, p = 0.5: no difference shown")


class Checker(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.scripts = [], 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        assert not [value for name, value in attrs if value and value.startswith(("http:", "https:", "//"))]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_well_formed_page_with_its_text_escaped(run_folder):
    page = write_report(run_folder).read_text()
    checker = Checker()
    checker.feed(page)
    assert (checker.open, checker.scripts) == ([], 0)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "no difference shown" in page
    assert page.count("<polyline") == 2


def test_a_folder_without_results_is_the_users_mistake(tmp_path):
    with pytest.raises(InputError, match="give the folder of a finished run"):
        write_report(tmp_path)
