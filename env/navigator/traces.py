"""Episodes played again from a file of trajectories, each step with what it took in and what it gave up.

A row is either one of ours ("steps", each with its "response") or one of recorded responses ("responses"). Nothing
else in it is believed: what a step did is what the environment does with the response now. An episode whose recorded
reward is not the one it earns now is marked, because its file was made with other instances or other rules.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.navigator.actions import Verb
from env.navigator.episode import NavigatorEpisode
from env.navigator.instance import Instance, from_row, read_rows
from env.navigator.prompt import Item
from env.protocol import StepResult


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedStep:
    """One response and what it did."""

    result: StepResult
    replaced: Mapping[str, str]
    """Texts of the items that a COMPRESS replaced, by id; empty for any other step."""
    summary: Item | None
    """The summary that replaced them, as it was cut and charged; None for any other step."""

    @property
    def did(self) -> str | None:
        """The verb that was carried out, or None."""
        return self.result.kind if self.result.ok else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """One episode, ended or not."""

    episode: NavigatorEpisode
    """As the last step left it; its ending is None when the responses stop before an end."""
    steps: tuple[TracedStep, ...]
    agrees: bool
    """Whether the reward is the recorded one, where one is recorded."""

    @property
    def instance(self) -> Instance:
        """What was played."""
        return self.episode.instance

    @property
    def reads(self) -> list[int]:
        """Chunks that were read, in order, again each time."""
        return [int(step.result.ids[0]) for step in self.steps if step.did == Verb.READ]


def trace(instance: Instance, responses: Iterable[tuple[str, bool]]) -> Trace:
    """Play (response, truncated) pairs; those after the end are ignored."""
    episode, steps = NavigatorEpisode(instance), []
    for response, truncated in responses:
        if episode.ending is not None:
            break
        held = dict(episode.held)
        result = episode.step(response, truncated=truncated)
        compressed = result.ok and result.kind == Verb.COMPRESS
        steps.append(
            TracedStep(
                result=result,
                replaced={name: held[name].text for name in result.ids} if compressed else {},
                summary=list(episode.held.values())[-1] if compressed else None,
            )
        )
    return Trace(episode=episode, steps=tuple(steps), agrees=True)


def known_instances(paths: Sequence[Path]) -> dict[str, Instance]:
    """Instances of some files by id. InputError for an id that comes twice or evidence in a chunk that is not there."""
    known: dict[str, Instance] = {}
    for path in paths:
        for where, row in read_rows(path):
            instance = from_row(row, where)
            if instance.id in known:
                raise InputError(f"{where}: instance {instance.id!r} is there twice; a response could mean either")
            check_evidence(instance, where)
            known[instance.id] = instance
    return known


def check_evidence(instance: Instance, where: str) -> None:
    """InputError when the evidence is said to be in a chunk that does not exist."""
    last = len(instance.chunks) - 1
    for number, found in enumerate(instance.evidence):
        if not 0 <= found.chunk_idx <= last:
            raise InputError(f"{where}: field 'evidence'[{number}]: field 'chunk_idx' is {found.chunk_idx}, the last chunk is {last}")


def read_traces(path: Path, known: Mapping[str, Instance]) -> Iterator[Trace]:
    """Play every row of a file. InputError with file, line and field, and for an instance that is not known."""
    for where, row in read_rows(path):
        if not isinstance(row, dict) or not isinstance(row.get("instance_id"), str):
            raise InputError(f"{where}: expected an object with a text 'instance_id' and a list 'steps' or 'responses'")
        if row["instance_id"] not in known:
            raise InputError(f"{where}: instance {row['instance_id']!r} is not in the instance files; give those it was played on")
        played = trace(known[row["instance_id"]], _responses(row, where))
        yield Trace(episode=played.episode, steps=played.steps, agrees=_agrees(row, played.episode.reward))


def _responses(row: Mapping[str, Any], where: str) -> list[tuple[str, bool]]:
    """(response, truncated) of every step."""
    if "steps" not in row and "responses" in row:
        responses = row["responses"]
        if not isinstance(responses, list) or not all(isinstance(text, str) for text in responses):
            raise InputError(f"{where}: field 'responses' must be a list of texts")
        return [(text, False) for text in responses]
    steps = row.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, dict) and isinstance(step.get("response"), str) for step in steps):
        raise InputError(f"{where}: field 'steps' must be a list of objects with a text 'response' (or 'responses' a list of texts)")
    return [(step["response"], step.get("finish_reason") == "length") for step in steps]


def _agrees(row: Mapping[str, Any], reward: float | None) -> bool:
    """Nothing is recorded for an episode that failed by an error of the engine."""
    if row.get("failure") is not None or not isinstance(row.get("reward"), int | float):
        return True
    return reward is not None and abs(row["reward"] - reward) < 1e-9
