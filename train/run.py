"""The whole chain, one function a stage: instances, teacher rows, SFT, merge, GRPO, held-out evaluation, report.

A stage writes its manifest beside its output; a stage whose manifest says `finished` with the same inputs is
skipped, so a stopped run goes on where it was and a changed setting redoes what depends on it.
"""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from env.files import atomic_write
from env.navigator.settings import get_profile, get_split
from train import manifest
from train.checks import REFERENCE_POLICIES, check_model
from train.config import Config, digest, plain
from train.progress import Progress
from train.report import write_report
from train.results import collect_results, results_table

SPLITS = ("train", "dev", "id_test", "ood_test")
HELD_OUT = ("id_test", "ood_test")


class Chain:
    """A run folder and its stages."""

    def __init__(self, config: Config, out: Path) -> None:
        self.config, self.out = config, out
        self.digests: dict[str, str] = {}
        """Stage -> fingerprint of everything its result depends on."""

    def stage(self, name: str, inputs: Mapping[str, Any], after: tuple[str, ...], work: Callable[[], Mapping[str, Any] | None]) -> None:
        """Run `work` unless it has finished with the same inputs and the same earlier stages."""
        everything = {**inputs, "after": {earlier: self.digests[earlier] for earlier in after}}
        self.digests[name] = fingerprint = digest(everything)
        if manifest.done(self.out, name, fingerprint):
            _say(f"{name}: done before, skipped")
            return
        _say(f"{name}: starting")
        with manifest.stage(self.out, name, everything) as facts:
            facts.update(work() or {})
        _say(f"{name}: {manifest.read(self.out, name)['wall_seconds']:.0f} s")

    def seconds(self) -> dict[str, float]:
        """Wall seconds of every stage, also of those that an earlier call ran."""
        return {name: manifest.read(self.out, name)["wall_seconds"] for name in self.digests}


def run(config: Config, out: Path) -> dict[str, Any]:
    """Run or resume the chain in folder `out`; prints one table and the path of the report, returns results.json."""
    check_model(config.model.path)
    chain = Chain(config, out)
    whole = plain(config)
    with ExitStack() as engines:
        chain.stage("data", {"profile": config.profile, "data": whole["data"]}, (), lambda: make_data(config, out))
        chain.stage("teacher", {"teacher": whole["teacher"], "seed": config.seed}, ("data",), lambda: make_rows(config, out))
        training = {name: whole[name] for name in ("model", "seed", "lora")}
        chain.stage("sft", {**training, "sft": whole["sft"]}, ("teacher",), lambda: train_sft(config, out))
        shared = _Shared(config, engines)
        chain.stage("grpo", {**training, "grpo": whole["grpo"]}, ("sft",), lambda: train_grpo(config, out, shared))
        judged = {"evaluate": whole["evaluate"], "seed": config.seed}
        for name in REFERENCE_POLICIES:
            chain.stage(f"evaluate-{name}", judged, ("data",), partial(evaluate, config, out, name, name))
        merged, adapter, base = str(out / "sft" / "merged"), out / "grpo" / "adapter", config.model.path
        models = {name: whole[name] for name in ("model", "engine")}
        chain.stage(
            "evaluate-grpo",
            {**judged, **models},
            ("grpo",),
            lambda: evaluate(config, out, "grpo", merged, adapter=adapter, runner=shared.engine(merged)),
        )
        chain.stage(
            "evaluate-sft", {**judged, **models}, ("sft",), lambda: evaluate(config, out, "sft", merged, runner=shared.engine(merged))
        )
        chain.stage(
            "evaluate-base", {**judged, **models}, ("data",), lambda: evaluate(config, out, "base", base, runner=shared.engine(base))
        )
    return report(chain)


class _Shared:
    """At most one engine at a time, started when it is first needed and kept while the model stays the same."""

    def __init__(self, config: Config, stack: ExitStack) -> None:
        self.config, self.stack = config, stack
        self.model = ""
        self.current: Any = None

    def engine(self, model: str) -> Any:
        """The engine of a model folder."""
        from train.engines import open_engine

        if model != self.model:
            self.stack.close()
            self.current = self.stack.enter_context(open_engine(model, self.config))
            self.model = model
        return self.current


def make_data(config: Config, out: Path) -> dict[str, Any]:
    """Instances of every split. SettingError when the audit finds a confound."""
    from env.errors import SettingError
    from env.files import cores
    from env.navigator.generate import generate_file

    settings = get_profile(config.profile)
    facts = {}
    for split in SPLITS:
        n = getattr(config.data, split) or get_split(settings, split).size
        with Progress(f"generate {split}", total=n, unit="instance") as progress:
            report = generate_file(settings, split, 0, n, out / "data" / f"{split}.jsonl", progress, workers=cores())
        if not report["audit"]["passed"]:
            raise SettingError(f"{out}/data/{split}.report.json: the confound audit failed; do not train on this profile")
        facts[split] = {"instances": n, "rejection_rate": report["rejection_rate"]}
    return facts


def make_rows(config: Config, out: Path) -> dict[str, Any]:
    """SFT rows of the oracle on the train split."""
    from train.teacher import write_teacher_rows

    with Progress("teacher", total=config.teacher.n or config.data.train, unit="episode") as progress:
        return write_teacher_rows(
            out / "data" / "train.jsonl",
            out / "teacher" / "rows.jsonl",
            style=config.teacher.style,
            noise=config.teacher.noise,
            seed=config.seed,
            n=config.teacher.n,
            progress=progress,
        )


def train_sft(config: Config, out: Path) -> dict[str, Any]:
    """The SFT adapter, and the model with it merged in."""
    from train.sft import run_sft

    return run_sft(config, out / "teacher" / "rows.jsonl", out / "sft")


def train_grpo(config: Config, out: Path, shared: _Shared) -> dict[str, Any]:
    """The GRPO adapter on top of the merged SFT model."""
    from train.grpo import run_grpo

    merged = str(out / "sft" / "merged")
    return run_grpo(config, out / "data" / "train.jsonl", out / "grpo", model=merged, runner=shared.engine(merged))


def evaluate(config: Config, out: Path, name: str, policy: str, *, adapter: Path | None = None, runner: Any = None) -> dict[str, Any]:
    """Held-out ID and OOD episodes of one policy."""
    from train.evaluate import run_evaluation

    files = [out / "data" / f"{split}.jsonl" for split in HELD_OUT]
    n = config.evaluate.n_base if name == "base" else None
    summary = run_evaluation(config, policy=policy, adapter=adapter, instances=files, out=out / "eval" / name, runner=runner, n=n)
    return {split: numbers["accuracy"] for split, numbers in summary["splits"].items()}


def report(chain: Chain) -> dict[str, Any]:
    """results.json and report.html of a run; prints the table."""
    results = collect_results(chain.out, chain.seconds())
    with atomic_write(chain.out / "results.json") as stream:
        stream.write(json.dumps(results, indent=2) + "\n")
    print(results_table(results))
    print(write_report(chain.out))
    return results


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
