"""Instances and their files: the public field names, one JSON object a line.

Files go both ways between this system and the public one: unknown fields are kept and written back,
a missing or ill-typed field is an InputError that names file, line and field.
"""

import dataclasses
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

from env.errors import InputError
from env.files import atomic_write
from env.navigator.settings import RULE_TYPES


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A piece of the document that is read as a whole."""

    idx: int
    """The id that READ takes."""
    section: str
    header: str
    kind: str
    """register or noise."""
    text: str
    tokens: int
    """What holding it costs."""
    entity_names: list[str]
    """Entries in it, in order; empty for noise."""
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One link of the chain: the entry that must be read at a hop."""

    hop: int
    """From 1."""
    chunk_idx: int
    entity_type: str
    entity: str
    field: str
    """Name of the field whose value leads on, or is the answer at the last hop."""
    value: str
    token_offset: int
    """Tokens of the document before the entry."""
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Distractor:
    """A wrong path or value near a right one."""

    kind: str
    """superseded_link, superseded_value, near_miss_entity or near_miss_value."""
    hop: int
    chunk_idx: int
    entity: str
    value: str
    wrong_answer: str | None
    """What following it to the end answers, where it leads to one."""
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """One question over one document."""

    id: str
    seed: int
    split: str
    n_hops: int
    doc_tokens_target: int
    doc_tokens: int
    question: str
    answer: str
    answer_type: str
    answer_entity_type: str
    chunks: list[Chunk]
    evidence: list[Evidence]
    distractors: list[Distractor]
    candidate_answers: list[str]
    min_reads: int
    min_steps: int
    compression_required: bool
    generator: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How it was made."""
    env: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The rules it is played under; see settings.rules_from."""
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of other systems, kept."""


_NESTED = {"chunks": Chunk, "evidence": Evidence, "distractors": Distractor}
_OPTIONAL = {"generator", "env"}


def _check(value: Any, annotation: Any, where: str) -> None:
    """Raise InputError unless a JSON value fits a field's annotation."""
    if annotation is bool:
        good = isinstance(value, bool)
    elif annotation is float:
        good = isinstance(value, int | float) and not isinstance(value, bool)
    elif annotation is int:
        good = isinstance(value, int) and not isinstance(value, bool)
    elif annotation == list[str]:
        good = isinstance(value, list) and all(isinstance(item, str) for item in value)
    elif annotation == dict[str, Any]:
        good = isinstance(value, dict)
    elif annotation == str | None:
        good = value is None or isinstance(value, str)
    else:
        good = isinstance(value, annotation)
    if not good:
        expected = getattr(annotation, "__name__", str(annotation)) if not hasattr(annotation, "__args__") else str(annotation)
        raise InputError(f"{where} is {json.dumps(value)[:60]}, expected {expected}")


def _build(cls: type, row: Any, where: str) -> Any:
    """A dataclass of this module from a JSON object."""
    if not isinstance(row, dict):
        raise InputError(f"{where} is {json.dumps(row)[:60]}, expected an object")
    values: dict[str, Any] = {}
    for f in fields(cls):
        if f.name == "extra":
            continue
        if f.name not in row:
            if cls is Instance and f.name in _OPTIONAL:
                continue
            raise InputError(f"{where}: field {f.name!r} is missing")
        value, name = row[f.name], f"{where}: field {f.name!r}"
        if cls is Instance and f.name in _NESTED:
            if not isinstance(value, list):
                raise InputError(f"{name} is {json.dumps(value)[:60]}, expected a list")
            values[f.name] = [_build(_NESTED[f.name], item, f"{name}[{i}]") for i, item in enumerate(value)]
        else:
            _check(value, f.type, name)
            values[f.name] = value
    known = {f.name for f in fields(cls)}
    return cls(**values, extra={key: value for key, value in row.items() if key not in known})


def from_row(row: Any, where: str = "instance") -> Instance:
    """An instance from a parsed JSON object. InputError naming the field, prefixed with `where`."""
    instance: Instance = _build(Instance, row, where)
    if [chunk.idx for chunk in instance.chunks] != list(range(len(instance.chunks))):
        raise InputError(f"{where}: field 'chunks' must be numbered 0, 1, 2, ... in order by 'idx'")
    if instance.min_steps < 1:
        raise InputError(f"{where}: field 'min_steps' is {instance.min_steps}, expected at least 1")
    for name, kind in RULE_TYPES.items():
        if name in instance.env:
            _check(instance.env[name], kind, f"{where}: field 'env': field {name!r}")
    return instance


def to_row(instance: Instance) -> dict[str, Any]:
    """The JSON object of an instance, foreign fields included."""

    def plain(item: Any) -> dict[str, Any]:
        return {f.name: getattr(item, f.name) for f in fields(item) if f.name != "extra"} | dict(item.extra)

    return plain(instance) | {name: [plain(item) for item in getattr(instance, name)] for name in _NESTED}


def open_text(path: Path, suffix: str | None = None) -> IO[str]:
    """A text file for reading, decompressed by its suffix (.gz, .zst). InputError when it cannot be opened."""
    suffix = path.suffix if suffix is None else suffix
    try:
        if suffix == ".gz":
            return gzip.open(path, "rt", encoding="utf-8")
        if suffix == ".zst":
            import zstandard

            frames = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True, closefd=True)
            return io.TextIOWrapper(frames, encoding="utf-8")
        return path.open(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def read_rows(path: Path, suffix: str | None = None) -> Iterator[tuple[str, Any]]:
    """(`path:line`, parsed JSON) of every line that is not blank. InputError for a line that is no JSON."""
    with open_text(path, suffix) as stream:
        try:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    where = f"{path}:{number}"
                    try:
                        yield where, json.loads(line)
                    except json.JSONDecodeError as error:
                        raise InputError(f"{where}: not JSON ({error.msg} at column {error.colno})") from error
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read ({error})") from error


def read_instances(path: Path) -> Iterator[Instance]:
    """Stream the instances of a file. InputError with file, line and field."""
    for where, row in read_rows(path):
        yield from_row(row, where)


def dump_row(row: Mapping[str, Any]) -> str:
    """One line of JSON, newline included; the same bytes for the same row everywhere."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def compress(data: bytes, suffix: str) -> bytes:
    """One complete gzip member or zstd frame; members and frames one after another are a file."""
    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    if suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().compress(data)
    return data


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write JSON lines whole or not at all, compressed by suffix; returns the number of rows."""
    count = 0
    with atomic_write(path, "wb") as raw:
        sink: IO[bytes] = raw
        if path.suffix == ".gz":
            sink = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)  # type: ignore[assignment]
        elif path.suffix == ".zst":
            import zstandard

            sink = zstandard.ZstdCompressor().stream_writer(raw, closefd=False)
        for row in rows:
            # A lone surrogate in a model's text becomes its JSON escape.
            sink.write(dump_row(row).encode(errors="backslashreplace"))
            count += 1
        if sink is not raw:
            sink.close()
    return count
