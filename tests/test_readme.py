import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_policy_of_the_readme_runs_as_it_stands_and_prints_what_is_said():
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Write a policy in ten lines\n")[1].split("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    said = re.search(r"It prints `(.*?)`", section)[1]
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == said + "\n"
    body = program.split("def policy(prompt: str) -> str:\n")[1].split("\n\n\n")[0]
    assert len(body.splitlines()) == 10
