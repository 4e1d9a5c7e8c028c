"""Plays recorded responses through the environment and writes what it answered."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.navigator.episode import NavigatorEpisode
from env.navigator.instance import Instance, read_rows, write_rows
from env.navigator.traces import known_instances

_COUNTS = ("steps_used", "n_reads", "n_compress", "n_drop", "n_invalid")


def replay_row(instance: Instance, responses: Sequence[str]) -> dict[str, Any]:
    """What the environment answers to `responses`; those after the end are ignored."""
    episode = NavigatorEpisode(instance)
    steps = []
    for response in responses:
        if episode.ending is not None:
            break
        result = episode.step(response)
        steps.append(
            {
                "kind": result.kind,
                "ids": list(result.ids),
                "ok": result.ok,
                "error": result.error,
                "used": result.used,
                "done": result.done,
            }
        )
    metrics = episode.metrics()
    return {
        "instance_id": instance.id,
        "steps": steps,
        "reward": episode.reward,
        "done": episode.ending is not None,
        "ending": episode.ending.value if episode.ending else None,
        "correct": metrics["correct"],
        "answer": metrics["answer"],
        **{name: metrics[name] for name in _COUNTS},
    }


def replay(instances: Path, actions: Path, out: Path) -> int:
    """Write one row for each row {"instance_id", "responses"} of `actions`; returns their number. InputError with file and line."""
    known = known_instances([instances])

    def rows() -> Iterator[dict[str, Any]]:
        for where, row in read_rows(actions):
            if not isinstance(row, dict) or not isinstance(row.get("instance_id"), str):
                raise InputError(f"{where}: expected an object with a text 'instance_id' and a list 'responses'")
            responses = row.get("responses")
            if not isinstance(responses, list) or not all(isinstance(text, str) for text in responses):
                raise InputError(f"{where}: field 'responses' must be a list of texts")
            if row["instance_id"] not in known:
                raise InputError(f"{where}: instance {row['instance_id']!r} is not in {instances}")
            yield replay_row(known[row["instance_id"]], responses)

    return write_rows(out, rows())
