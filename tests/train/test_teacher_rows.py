import json

import pytest

from env.navigator.generate import generate_file
from env.navigator.instance import read_instances, read_rows
from env.navigator.settings import get_profile
from train.teacher import write_teacher_rows


@pytest.fixture
def instances(tmp_path):
    generate_file(get_profile("laptop"), "train", 0, 4, tmp_path / "train.jsonl")
    return tmp_path / "train.jsonl"


def test_a_row_for_each_step_of_the_first_n_episodes_and_a_report_beside_them(tmp_path, instances):
    played = []
    out = tmp_path / "rows.jsonl"
    report = write_teacher_rows(instances, out, style="derive", noise=0.0, seed=0, n=3, progress=played.append)
    steps = sum(instance.min_steps for instance in list(read_instances(instances))[:3])
    assert report == {"style": "derive", "noise": 0.0, "played": 3, "kept": 3, "refused": {}, "rows": steps}
    assert len(list(read_rows(out))) == steps
    assert json.loads((tmp_path / "rows.report.json").read_text()) == report
    assert played == [1, 1, 1]


def test_rows_repeat_by_seed(tmp_path, instances):
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_teacher_rows(instances, tmp_path / f"{name}.jsonl", style="assert", noise=0.5, seed=seed)
        texts.append((tmp_path / f"{name}.jsonl").read_text())
    assert texts[0] == texts[1] != texts[2]
