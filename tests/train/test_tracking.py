import io
import json
import sys

import pytest

from train.config import TrackingSettings
from train.progress import Progress
from train.tracking import Tracker


def rows(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "time"} for row in lines]


def test_a_row_is_on_disk_as_soon_as_it_is_logged(tmp_path):
    tracker = Tracker(tmp_path, TrackingSettings())
    tracker.log({"train/kl": 0.5, "train/reward": 1}, step=1)
    assert rows(tmp_path) == [{"step": 1, "train/kl": 0.5, "train/reward": 1.0}]
    tracker.close()
    tracker.close()


def test_a_number_that_is_not_finite_is_null_and_the_file_stays_json(tmp_path):
    with Tracker(tmp_path, TrackingSettings()) as tracker:
        tracker.log({"loss": float("nan"), "norm": float("inf")}, step=0)
    assert rows(tmp_path) == [{"step": 0, "loss": None, "norm": None}]


def test_a_resumed_run_appends_and_drops_the_half_line_of_a_killed_one(tmp_path):
    with Tracker(tmp_path, TrackingSettings()) as tracker:
        tracker.log({"loss": 2.0}, step=1)
    with (tmp_path / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 2, "lo')
    with Tracker(tmp_path, TrackingSettings()) as tracker:
        tracker.log({"loss": 1.0}, step=2)
    assert rows(tmp_path) == [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]


def test_an_alarm_is_a_row_and_a_line_on_stderr(tmp_path, capsys):
    with Tracker(tmp_path, TrackingSettings()) as tracker:
        tracker.alarm("KL is still 0 after 10 steps")
    assert rows(tmp_path) == [{"alarm": "KL is still 0 after 10 steps"}]
    assert capsys.readouterr().err == "navigator: alarm: KL is still 0 after 10 steps\n"


def test_wandb_that_cannot_start_is_one_warning_and_the_run_goes_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)  # what an installation without it looks like
    with Tracker(tmp_path, TrackingSettings(kind="wandb")) as tracker:
        tracker.log({"loss": 1.0}, step=1)
        tracker.alarm("look")
    assert rows(tmp_path) == [{"step": 1, "loss": 1.0}, {"alarm": "look"}]
    assert capsys.readouterr().err.count("navigator: warning: wandb init failed") == 1


def test_wandb_that_breaks_on_the_way_is_one_warning_and_the_run_goes_on(tmp_path, capsys):
    class Broken:
        def log(self, *args, **kwargs):
            raise RuntimeError("the service is gone\nwith details")

    tracker = Tracker(tmp_path, TrackingSettings())
    tracker._wandb = Broken()
    tracker.log({"loss": 1.0}, step=1)
    tracker.log({"loss": 0.5}, step=2)
    tracker.close()
    assert [row["loss"] for row in rows(tmp_path)] == [1.0, 0.5]
    errors = capsys.readouterr().err.splitlines()
    assert errors == ["navigator: warning: wandb log failed and is off now; metrics.jsonl goes on (RuntimeError: the service is gone)"]


def test_wandb_offline_writes_a_folder_with_the_same_run(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with Tracker(tmp_path / "run", TrackingSettings(kind="wandb"), {"seed": 1}) as tracker:
        tracker.log({"loss": 1.0}, step=1)
        assert tracker._wandb is not None
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))
    assert rows(tmp_path / "run") == [{"step": 1, "loss": 1.0}]


def test_progress_in_a_log_is_a_line_every_few_seconds_with_rate_and_time_left():
    clock, stream = iter([0.0, 1.0, 6.0, 6.0, 7.0, 10.0]), io.StringIO()
    with Progress("generate", total=100, unit="instance", stream=stream, clock=lambda: next(clock)) as advance:
        advance(10)  # at 1 s: too early
        advance(20, rejected=2)  # at 6 s
        advance(70)  # at 7 s: too early
    assert stream.getvalue().splitlines() == [
        "generate: 30/100 instances (30%), 5.0/s, 14 s left, rejected 2",
        "generate: 100/100 instances (100%), 10.0/s, 10 s, rejected 2",
    ]


def test_progress_without_a_total_counts():
    clock, stream = iter([0.0, 1.0, 4.0]), io.StringIO()
    with Progress("rollout", total=None, unit="episode", stream=stream, clock=lambda: next(clock)) as advance:
        advance(8)
    assert stream.getvalue() == "rollout: 8 episodes, 2.0/s, 4 s\n"


def test_progress_on_a_terminal_is_a_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with Progress("generate", total=2, unit="instance", stream=stream) as advance:
        advance(2, rejected=1)
    assert "100%" in stream.getvalue()
    assert "rejected=1" in stream.getvalue()
