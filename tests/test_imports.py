"""env <- rollout <- train, and nothing heavy before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {"env": {"env"}, "rollout": {"env", "rollout"}, "train": {"env", "rollout", "train"}}
HEAVY = {"torch", "transformers", "vllm", "trl", "peft", "wandb", "datasets", "accelerate"}
LAZY_IN_ENV = {"numpy", "tokenizers", "zstandard"}
"""Third-party packages that env may import inside a function."""


def imported(path):
    """(package, whole name, whether at module level) of every import in a file, those inside functions included."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [node.module]
        for name in names:
            yield name.partition(".")[0], name, id(node) in top


def files(package):
    found = sorted((ROOT / package).rglob("*.py"))
    assert found
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_run_one_way(package):
    forbidden = set(ALLOWED) - ALLOWED[package]
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path in files(package) for root, name, _ in imported(path) if root in forbidden]
    assert wrong == []


def test_env_imports_the_standard_library_and_two_more_lazily():
    allowed = sys.stdlib_module_names | {"env"}
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files("env")
        for root, name, top in imported(path)
        if root not in allowed and (top or root not in LAZY_IN_ENV)
    ]
    assert wrong == []


def test_vllm_is_imported_in_its_engine_files_only():
    users = {
        str(path.relative_to(ROOT)) for package in ALLOWED for path in files(package) for root, _, _ in imported(path) if root == "vllm"
    }
    assert users == {"rollout/engines/vllm.py", "rollout/engines/vllm_cpu_lora.py"}


def test_rollout_imports_transformers_in_engine_files_only():
    users = {
        path.relative_to(ROOT).parent.as_posix() for path in files("rollout") for root, _, _ in imported(path) if root == "transformers"
    }
    assert users <= {"rollout/engines"}


def loaded_after(code):
    """Names of the heavy modules in a fresh interpreter that ran `code`."""
    program = f"import sys\n{code}\nprint(*sorted(set(sys.modules) & {HEAVY!r}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stderr.split()


@pytest.mark.parametrize(
    "code", ["import env", "import env.navigator.settings, env.navigator.instance", "import rollout.engine, rollout.records"]
)
def test_an_import_of_the_environment_loads_nothing_heavy(code):
    assert loaded_after(code) == []


@pytest.mark.parametrize("arguments", [["--help"], ["grpo", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    code = f"from train.cli import main\ntry:\n    main({arguments!r})\nexcept SystemExit as end:\n    assert end.code == 0"
    assert loaded_after(code) == []


def test_settings_load_nothing_heavy():
    assert loaded_after("from train.config import load_config\nload_config(None)") == []


def test_no_package_hides_behind_a_test_folder():
    assert list((ROOT / "tests").rglob("__init__.py")) == []
