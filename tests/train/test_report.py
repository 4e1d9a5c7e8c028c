import json

import pytest

from train.evaluate import summarize
from train.report import write_report
from train.svg import line_chart


def row(name, *, correct, split, hops, failure=None):
    return {
        "instance_id": name,
        "split": split,
        "n_hops": hops,
        "correct": correct,
        "reward": float(correct),
        "ending": None if failure else "answered",
        "failure": failure,
        "steps_used": 4,
        "steps_over_min": 0,
        "n_compress": 0,
        "n_invalid": 0,
        "fact_retention": None,
        "distractor_capture": None,
    }


@pytest.fixture
def folder(tmp_path):
    """A run of one policy with nothing but a summary and results."""
    rows = [row("a", correct=True, split="id_test", hops=3), row("b", correct=False, split="ood_test", hops=3, failure="bad batch")]
    (tmp_path / "eval" / "sft").mkdir(parents=True)
    (tmp_path / "eval" / "sft" / "summary.json").write_text(json.dumps({"splits": summarize(rows)}))
    (tmp_path / "results.json").write_text(json.dumps({"policies": {}, "comparisons": {}, "seconds": {"sft": 12.0}}))
    return tmp_path


def cells(page, title):
    """Text of the table in a section, a list a row."""
    section = page.split(f"<h2>{title}</h2>")[1].split("</section>")[0]
    rows = section.split("<tr>")[1:]
    return [[cell.split(">")[-1] for cell in r.replace("</small>", "").replace("<small>", "").split("</t")[:-1]] for r in rows]


def test_hops_of_two_splits_stand_in_columns_of_their_own(folder):
    head, line = cells(write_report(folder).read_text(), "Accuracy by hops")[:2]
    assert head[:3] == ["policy", "ID, 3 hops", "OOD, 3 hops"]
    assert [cell.split(" ")[0] for cell in line[:3]] == ["sft", "1.000", "0.000"]


def test_failed_episodes_are_shown(folder):
    head, ours, ood = cells(write_report(folder).read_text(), "How episodes go")[:3]
    column = head.index("failed")
    assert (ours[column], ood[column]) == ("0", "1")


def test_what_a_run_does_not_have_is_left_out(folder):
    page = write_report(folder).read_text()
    for title in ("Accuracy", "Paired comparisons", "Alarms", "Training", "Made with"):
        assert f"<h2>{title}</h2>" not in page
    assert cells(page, "Time")[1][:3] == ["sft", "12", ""]


def test_a_step_logged_again_after_a_resume_is_drawn_once(folder):
    (folder / "sft").mkdir()
    lines = [{"step": 1, "loss": 4.0}, {"step": 2, "loss": 9.0}, {"step": 2, "loss": 2.0}, {"step": 3, "loss": None}]
    (folder / "sft" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert line_chart("SFT loss", [(1, 4.0), (2, 2.0)]) in write_report(folder).read_text()


def test_a_chart_of_one_point_is_left_out():
    assert line_chart("loss", [(1, 1.0)]) == ""


def test_a_flat_chart_runs_through_the_middle():
    assert 'points="46.0,68.0 312.0,68.0"' in line_chart("loss", [(1, 2.0), (2, 2.0)])
