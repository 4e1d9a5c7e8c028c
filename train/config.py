"""One frozen tree of settings behind every command: a sparse YAML file over the defaults, `--set` on top.

Departure from argparse flags and from untyped YAML: a key exists once, as a dataclass field; an unknown
key is refused with the nearest valid one, and no value is cast to a type that it does not have.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from env.errors import InputError, SettingError
from env.navigator.settings import get_profile, nearest
from train.settings import GrpoSettings, LoraSettings, PretrainSettings, SftSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSettings:
    """How many instances of each split a run generates; None is the whole split of the profile."""

    train: int | None = None
    dev: int | None = None
    id_test: int | None = None
    ood_test: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSettings:
    """The base model that everything starts from."""

    path: str = "train/base"
    """A model folder, relative to the working directory, or a hub name."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the weights in training and in the engine."""
    attention: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa"
    """Implementation in training."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherSettings:
    """What the oracle writes for SFT."""

    style: Literal["assert", "derive"] = "derive"
    """THOUGHT states the chunk, or derives it by comparing names with the map."""
    noise: float = 0.0
    """Probability of a detour per step."""
    n: int | None = None
    """Instances of the train split that are played; None is all of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSettings:
    """What makes completions."""

    kind: Literal["vllm", "transformers"] = "vllm"
    kv_cache_gib: float = 1.0
    """Size of the cache on a CPU; a GPU takes gpu_memory_utilization."""
    gpu_memory_utilization: float = 0.85
    max_num_seqs: int = 128
    """Requests decoded at once."""
    max_model_len: int = 1024
    """Longest prompt + completion."""
    max_loras: int = 3
    """Adapters held at once; allowed staleness + 2, or a new adapter waits for an old one to drain."""
    in_flight: int = 128
    """Episodes at once."""
    enforce_eager: bool = True
    """Skip compilation: slower decoding, faster start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateSettings:
    """How policies are compared on held-out instances."""

    max_tokens: int = 160
    """Bound on one completion."""
    temperature: float = 0.0
    """0 is greedy."""
    n: int | None = None
    """Episodes per file; None is all of them."""
    n_base: int | None = None
    """Episodes per file of the untrained model, which uses up every step; None is as many as the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackingSettings:
    """Where metrics go beside metrics.jsonl, which is always written."""

    kind: Literal["jsonl", "wandb"] = "jsonl"
    project: str = "long-context-navigator"
    mode: Literal["offline", "online"] = "offline"
    """wandb alone: offline writes a folder that `wandb sync` can send later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Everything a command may ask for."""

    seed: int = 0
    """Every other seed is derived from it."""
    profile: str = "laptop"
    """Sizes and rules of the environment; see env/navigator/settings.py."""
    data: DataSettings = field(default_factory=DataSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
    teacher: TeacherSettings = field(default_factory=TeacherSettings)
    sft: SftSettings = field(default_factory=SftSettings)
    lora: LoraSettings = field(default_factory=LoraSettings)
    grpo: GrpoSettings = field(default_factory=GrpoSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    evaluate: EvaluateSettings = field(default_factory=EvaluateSettings)
    tracking: TrackingSettings = field(default_factory=TrackingSettings)

    def to_dict(self) -> dict[str, Any]:
        """The whole tree as JSON values."""
        return plain(self)


def load_config(path: Path | None, overrides: Sequence[str] = ()) -> Config:
    """A file's settings over the defaults, then `a.b=value` overrides. InputError or SettingError in one sentence."""
    tree: dict[str, Any] = {}
    if path is not None:
        _merge(tree, _read(path), Config, "", str(path))
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise SettingError(f"--set {override} has no value: write --set {key}=VALUE")
        branch: Any = _parse(value, f"--set {override}")
        for name in reversed(key.strip().split(".")):
            branch = {name: branch}
        _merge(tree, branch, Config, "", f"--set {override}")
    config: Config = _build(Config, tree)
    get_profile(config.profile)
    return config


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, which need not fit into memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stamp(folder: Path) -> list[list[Any]]:
    """Name, size and time of the files in a model folder; nothing for a hub name. To read a large model takes too long."""
    files = sorted(path for path in folder.glob("*") if path.is_file())
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def digest(value: Any) -> str:
    """A short fingerprint of settings or other JSON values; equal for equal content."""
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()[:16]


def keys(cls: type = Config, prefix: str = "") -> list[str]:
    """Every dotted key, sections left out."""
    hints = get_type_hints(cls)
    found = []
    for f in dataclasses.fields(cls):
        name = prefix + f.name
        found += keys(hints[f.name], name + ".") if dataclasses.is_dataclass(hints[f.name]) else [name]
    return found


class _Loader(yaml.SafeLoader):
    """YAML 1.1 takes 2e-5 for text; this one takes it for the number that it is."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789"))


def _parse(text: str, where: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise SettingError(f"{where}{line}: not YAML ({getattr(error, 'problem', None) or error})") from error


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a configuration ({getattr(error, 'strerror', None) or error})") from error
    tree = _parse(text, str(path))
    if tree is not None and not isinstance(tree, Mapping):
        raise SettingError(f"{path}: expected `key: value` lines, found {type(tree).__name__}")
    return tree or {}


def _merge(tree: dict[str, Any], branch: Mapping[str, Any], cls: type, prefix: str, where: str) -> None:
    """Check a branch of settings against the dataclass `cls` and lay it over `tree`."""
    hints = get_type_hints(cls)
    for name, value in branch.items():
        key = f"{prefix}{name}"
        if name not in hints:
            whole = f"{key}.{next(iter(value))}" if isinstance(value, Mapping) and value else key
            raise SettingError(f"{where}: {whole} is no setting; the nearest one is {_nearest_key(whole)}")
        if not dataclasses.is_dataclass(hints[name]):
            tree[name] = _fit(value, hints[name], key, where)
        elif isinstance(value, Mapping):
            _merge(tree.setdefault(name, {}), value, hints[name], f"{key}.", where)
        elif value is not None:  # a section with every line commented out is None
            raise SettingError(
                f"{where}: {key} is a section, not the value {value!r}; set one of {', '.join(keys(hints[name], key + '.'))}"
            )


def _nearest_key(key: str) -> str:
    """The same last name in another section when there is one, else the closest of all keys."""
    last = key.rpartition(".")[2]
    return next((other for other in keys() if other.rpartition(".")[2] == last), nearest(key, keys()))


def _fit(value: Any, kind: Any, key: str, where: str) -> Any:
    """`value` as the type of its field. SettingError where it is of another."""
    fitted = _try_fit(value, kind)
    if fitted is _MISFIT:
        raise SettingError(f"{where}: {key} is {value!r}, expected {_describe(kind)}")
    return fitted


_MISFIT = object()


def _try_fit(value: Any, kind: Any) -> Any:
    """The fitted value or _MISFIT. An int is a float, a YAML list is a tuple, a text is a Path; nothing else changes type."""
    if get_origin(kind) in (Union, UnionType):
        return next((fitted for option in get_args(kind) if (fitted := _try_fit(value, option)) is not _MISFIT), _MISFIT)
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else _MISFIT
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            return _MISFIT
        items = [_try_fit(item, get_args(kind)[0]) for item in value]
        return _MISFIT if any(item is _MISFIT for item in items) else tuple(items)
    if kind is NoneType:
        return None if value is None else _MISFIT
    if kind is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _MISFIT
    if kind is int:
        return value if isinstance(value, int) and not isinstance(value, bool) else _MISFIT
    if kind is Path:
        return Path(value) if isinstance(value, str) else _MISFIT
    if issubclass(kind, Enum):
        return kind(value) if value in [member.value for member in kind] else _MISFIT
    return value if isinstance(value, kind) else _MISFIT


def _describe(kind: Any) -> str:
    """A type in the words of a message."""
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_describe(option) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(str(option) for option in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a list of {_describe(get_args(kind)[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Path: "a path", NoneType: "null"}
    return words.get(kind, str(kind))


def _build(cls: type, tree: Mapping[str, Any]) -> Any:
    """The dataclass of a checked tree; __post_init__ of a section may still refuse a value out of range."""
    hints = get_type_hints(cls)
    return cls(**{name: _build(hints[name], value) if dataclasses.is_dataclass(hints[name]) else value for name, value in tree.items()})


def plain(value: Any) -> Any:
    """JSON values of dataclasses, tuples, enums and paths."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value
