import json
from pathlib import Path

import pytest

from train.config import load_config
from train.run import run

TINY = Path(__file__).parents[1] / "configs" / "tiny.yaml"
OVERRIDES = [
    "data.train=8",
    "data.dev=1",
    "data.id_test=2",
    "data.ood_test=2",
    "sft.save_steps=2",
    "grpo.groups=2",
    "grpo.group_size=2",
    "evaluate.n_base=1",
    "evaluate.max_tokens=8",
    "grpo.max_tokens=8",
]


@pytest.fixture(scope="module")
def finished(tiny_model_dir, tmp_path_factory):
    """A whole chain on the tiny model: (config, folder, results)."""
    config = load_config(TINY, [*OVERRIDES, f"model.path={tiny_model_dir}"])
    out = tmp_path_factory.mktemp("runs") / "chain"
    return config, out, run(config, out)


def test_the_whole_chain_runs_and_writes_its_results(finished):
    _, out, results = finished
    assert results == json.loads((out / "results.json").read_text())
    assert set(results["policies"]) == {"base", "sft", "grpo", "oracle", "random", "no-read"}
    assert results["policies"]["oracle"]["id"]["accuracy"] == 1.0
    assert {split: results["policies"]["grpo"][split]["n"] for split in ("id", "ood")} == {"id": 2, "ood": 2}
    assert results["comparisons"]["grpo_vs_sft"]["id"]["n"] == 2
    assert set(results["seconds"]) >= {"data", "teacher", "sft", "grpo", "evaluate-grpo"}
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert (out / "grpo" / "adapter" / "adapter_model.safetensors").exists()


def test_every_optimiser_step_is_measured_and_leaves_an_adapter(finished):
    _, out, _ = finished
    rows = [json.loads(line) for line in (out / "grpo" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row["groups"] == 2 and row["failed_episodes"] == 0 and row["cache_hit"] > 0 for row in rows)
    assert {path.name for path in (out / "grpo" / "adapters").iterdir()} == {"v1", "v2"}


def test_a_second_call_skips_every_stage(finished, capsys):
    config, out, results = finished
    assert run(config, out) == results
    said = [line for line in capsys.readouterr().err.splitlines() if line.endswith("done before, skipped")]
    assert len(said) == len(results["seconds"])
