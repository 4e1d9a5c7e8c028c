import json
import re

import pytest

from env.navigator.instance import to_row, write_rows
from train.cli import main
from train.figures import measure, table
from train.statistics import clustered_means, clustered_share, wilson
from train.trace_reports import audit_files, diagnose_files


@pytest.fixture
def files(village, tmp_path):
    """(trajectories, instances): four episodes of two instances."""
    write_rows(tmp_path / "i.jsonl", [to_row(village), to_row(village) | {"id": "town"}])
    scripts = [
        ("village", ["READ 1", "READ 5", "READ 3", "ANSWER 4,210"]),
        ("village", ["ANSWER 4,180"]),
        ("town", ["READ 1", "COMPRESS 1 :: Ada: Friend = Bo", "READ 1", "READ 4", "READ 6", "ANSWER 7"]),
        ("town", ["READ 0"]),
    ]
    rows = [{"instance_id": name, "responses": [f"ACTION: {action}" for action in actions]} for name, actions in scripts]
    write_rows(tmp_path / "t.jsonl", rows)
    return tmp_path / "t.jsonl", tmp_path / "i.jsonl"


def figures(report, path):
    """(value, n) of every figure of the one split."""
    [groups] = report[str(path)].values()
    return {name: (f["value"], f["n"]) for group in groups.values() for name, f in group.items() if isinstance(f, dict)}


def test_the_five_probes_as_figures(files):
    report = audit_files([files[0]], [files[1]])
    found = figures(report, files[0])
    assert report[str(files[0])]["cases"]["episodes"]["episodes"] == 4
    expected = {
        "accuracy": (0.25, 4), "answered": (0.75, 4), "unfinished": (0.25, 4), "steps": (3.0, 4),
        "read_nothing": (0.25, 4), "accuracy_of_those": (0.0, 1),
        "fifth_1_of_the_document": (None, 0), "fifth_2_of_the_document": (0.25, 4),
        "summaries": (0.25, 4), "facts_kept": (1.0, 1), "degenerate": (0.0, 1), "degenerate:_copied": (0.0, 1),
        "reads_over_the_minimum": (-1.0, 4), "re-reads": (0.25, 4), "re-read_something": (0.25, 4),
        "re-read_what_it_had_compressed": (0.25, 4),
        "answered_wrongly": (0.5, 4), "a_known_distractor_of_those": (0.5, 2), "superseded_link": (0.5, 2),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_where_the_steps_go_as_figures(files):
    found = figures(diagnose_files([files[0]], [files[1]]), files[0])
    expected = {
        "answer": (0.75, 4), "compress": (0.25, 4), "refused": (0.0, 4), "wasted": (1.25, 4),
        "in_a_wrong_section": (0.0, 2), "by_chance": (pytest.approx((0.6 + (3 / 5 + 3 / 4) / 2) / 2), 2),
        "distance_in_the_right_section": (1.0, 2), "distance_by_chance": (1.0, 2),
        "needed": (3.0, 4), "resolved": (1.0, 4), "all_resolved": (0.25, 4),
        "hop_1_resolved_once_wanted": (0.5, 4), "hop_1_reads_off_target": (pytest.approx(1 / 3), 3),
        "hop_2_resolved_once_wanted": (0.5, 2), "hop_2_reads_off_target": (pytest.approx(1 / 3), 2),
        "hop_3_resolved_once_wanted": (1.0, 1),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_shares_of_reads_are_means_over_episodes_not_over_reads(files):
    [groups] = diagnose_files([files[0]], [files[1]])[str(files[0])].values()
    shares = {name: (f["value"], f["n"]) for name, f in groups["share_of_an_episode's_reads"].items()}
    assert shares == {
        "on-target_read": (pytest.approx((1 + 1 / 4 + 0) / 3), 3),
        "re-read": (pytest.approx(1 / 12), 3),
        "out-of-order_read": (0.0, 3),
        "off-target_read": (pytest.approx((2 / 4 + 1) / 3), 3),
    }


def test_a_spread_over_positions_is_shown_with_what_chance_gives(village, tmp_path):
    chunks = [0, 2, 4, 5, 7]
    instances = [to_row(village) | {"id": f"v{n}"} for n in range(50)]
    for n, row in enumerate(instances):
        row["evidence"] = [*row["evidence"][:2], row["evidence"][2] | {"chunk_idx": chunks[n % 5]}]
    rows = [{"instance_id": f"v{n}", "responses": [f"ACTION: ANSWER {'4,210' if n % 5 == 0 else 1}"]} for n in range(50)]
    write_rows(tmp_path / "i.jsonl", instances)
    write_rows(tmp_path / "t.jsonl", rows)
    report = audit_files([tmp_path / "t.jsonl"], [tmp_path / "i.jsonl"])[str(tmp_path / "t.jsonl")]["cases"]
    spread = report["2_accuracy_by_position_of_the_answer"]["spread"]
    assert (spread["value"], spread["n"]) == (1.0, 50)
    assert 0.2 < spread["chance"] < 0.8


def test_booleans_make_a_share_and_numbers_a_mean():
    found = measure({"g": {"share": [True, False, None, True], "mean": [1, None, 3, 2], "none": [None] * 4}}, ["a", "b", "c", "d"])["g"]
    assert found["share"] == {"value": pytest.approx(2 / 3), "interval": list(wilson(2, 3)), "n": 3}
    assert (found["mean"]["value"], found["mean"]["n"]) == (2.0, 3)
    assert found["none"] == {"value": None, "interval": None, "n": 0}


def test_episodes_of_one_instance_are_no_independent_observations():
    assert clustered_share([True, False] * 50, ["a", "b"] * 50) == wilson(1.0, 2)
    assert clustered_share([True, False], ["a", "b"]) == wilson(1, 2)
    [repeated] = clustered_means([[0.0, 1.0] * 50], ["a", "b"] * 50)
    assert repeated == (0.0, 1.0)


def test_a_mean_resamples_instances_and_weighs_episodes():
    same, gaps, empty = clustered_means([[2, 2, 2], [1, None, 3], [None, None, 1.0]], ["a", "a", "b"])
    assert (same, gaps, empty) == ((2.0, 2.0), (1.0, 3.0), (1.0, 1.0))


def test_the_interval_of_a_mean_is_close_to_the_normal_one():
    values = [float(n) for n in range(100)]
    [(low, high)] = clustered_means([values], [str(n) for n in range(100)])
    error = (sum((v - 49.5) ** 2 for v in values) / 100) ** 0.5 / 10
    assert (low, high) == (pytest.approx(49.5 - 1.96 * error, abs=0.4), pytest.approx(49.5 + 1.96 * error, abs=0.4))


def test_a_table_has_a_column_for_every_split():
    figure = {"value": 0.5, "interval": [0.25, 0.75], "n": 4}
    text = table({"id": {"g": {"a_b": figure, "n": 3}}, "ood": {"g": {"a_b": {"value": None, "interval": None, "n": 0}}}})
    assert [line.split() for line in text.split("\n")] == [
        ["id", "ood"],
        [],
        ["g"],
        ["a", "b", "0.500", "[0.250,", "0.750]", "n=4", "-"],
        ["n", "3"],
    ]


@pytest.mark.parametrize("command", ["audit", "diagnose"])
def test_the_commands_print_the_table_and_write_the_figures(files, command, tmp_path, capsys):
    trajectories, instances = files
    assert main([command, str(trajectories), "--instances", str(instances), "--out", str(tmp_path / "r" / "o.json")]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{trajectories}\n")
    assert re.search(r"^  accuracy +0\.250 \[0\.0\d\d, 0\.\d{3}\] n=4$", out, re.MULTILINE)
    written = json.loads((tmp_path / "r" / "o.json").read_text())
    assert written == {"audit": audit_files, "diagnose": diagnose_files}[command]([trajectories], [instances])
    assert main([command, str(trajectories), "--instances", str(instances)]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("command", ["audit", "diagnose"])
def test_an_unknown_instance_is_one_line_and_exit_2(files, command, tmp_path, capsys):
    write_rows(tmp_path / "o.jsonl", [{"instance_id": "hamlet", "responses": []}])
    assert main([command, str(tmp_path / "o.jsonl"), "--instances", str(files[1])]) == 2
    error = f"{tmp_path}/o.jsonl:1: instance 'hamlet' is not in the instance files; give those it was played on"
    assert capsys.readouterr() == ("", f"navigator: error: {error}\n")


def test_a_file_without_a_trajectory_is_an_error(files, tmp_path, capsys):
    (tmp_path / "e.jsonl").touch()
    assert main(["audit", str(tmp_path / "e.jsonl"), "--instances", str(files[1])]) == 2
    assert capsys.readouterr().err == f"navigator: error: {tmp_path}/e.jsonl: no trajectory in it\n"
