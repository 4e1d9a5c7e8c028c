import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from env import list_environments, make
from env.errors import SettingError

ROOT = Path(__file__).parents[2]


def test_every_environment_is_listed_with_one_line():
    listed = list_environments()
    assert "navigator" in listed
    assert all(line and "\n" not in line for line in listed.values())


def test_instances_are_made_one_at_a_time_by_index():
    environment = make("navigator", profile="laptop", split="ood_test")
    assert len(environment) == 600
    assert [instance.id for instance in islice(environment, 2)] == ["laptop-ood_test-000000", "laptop-ood_test-000001"]
    assert environment[-1].id == "laptop-ood_test-000599"
    assert environment[1] == next(islice(environment, 1, None))
    with pytest.raises(IndexError):
        environment[600]


def test_the_public_task_is_the_default():
    assert make("navigator")[0].id == "v1-train-000000"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("navigater", {}, "environment 'navigater' is unknown: use one of navigator"),
        ("navigator", {"profile": "v9"}, "profile 'v9' is unknown: use one of v1, laptop"),
        ("navigator", {"split": "test"}, "split 'test' is unknown in profile v1"),
    ],
)
def test_a_wrong_name_is_said_in_one_sentence(name, options, message):
    with pytest.raises(SettingError, match=message):
        make(name, **options)


def test_many_instances_are_not_all_kept():
    environment = make("navigator", profile="laptop", split="train")
    first = environment[0]
    for index in range(300):
        environment.episode(first if index == 0 else environment[index])
    assert len(environment._static) == 256
    assert environment.episode(first).observe().static.startswith(f"Question: {first.question}")


def test_the_package_alone_loads_no_environment():
    program = "import env, sys; print(*sorted(name for name in sys.modules if name.startswith(('env', 'random', 'concurrent'))))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "env\n"
