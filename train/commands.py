"""What each command does: load the settings, refuse wrong paths, import the part, call it.

Every function takes the parsed arguments and returns the exit code. Imports are inside on purpose: a command
loads only the libraries that it needs.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from env.errors import InputError, SettingError

if TYPE_CHECKING:
    from train.config import Config


def run(arguments: Namespace) -> int:
    """The whole chain."""
    config = _config(arguments)
    from train.run import run as run_chain

    run_chain(config, arguments.out)
    return 0


def generate(arguments: Namespace) -> int:
    """Instances and their report; 1 when the audit finds a confound."""
    config = _config(arguments, profile=arguments.profile)
    from env.navigator.settings import get_profile, get_split

    settings = get_profile(config.profile)
    n = arguments.n or get_split(settings, arguments.split).size

    from env.files import cores
    from env.navigator.generate import generate_file, report_path
    from train.progress import Progress

    with Progress(f"generate {arguments.split}", total=n, unit="instance") as progress:
        report = generate_file(settings, arguments.split, arguments.start, n, arguments.out, progress, workers=arguments.workers or cores())
    if not report["audit"]["passed"]:
        print(f"{arguments.out}: the confound audit failed; see {report_path(arguments.out)}", file=sys.stderr)
        return 1
    print(f"{arguments.out}: {n} instances from {report['attempts']} attempts")
    return 0


def validate(arguments: Namespace) -> int:
    """Problems of instance files; 1 when there is one."""
    _config(arguments)
    files = [_existing(path) for path in arguments.files]
    from env.navigator.validate import validate_file

    failed = foreign = 0
    for path in files:
        for verdict in validate_file(path):
            if verdict.complaints:
                failed += 1
                print(f"{verdict.where}: {verdict.instance_id}: {'; '.join(verdict.complaints)}")
            if verdict.unchecked:
                foreign += 1
                missing = ", ".join(verdict.unchecked)
    if foreign:
        print(f"{foreign} instance{'s are' if foreign > 1 else ' is'} in a grammar of another system; not checked there: {missing}")
    if failed:
        print(f"{failed} instance{'s' if failed > 1 else ''} failed", file=sys.stderr)
        return 1
    print("every instance is valid" + (" as far as it could be checked" if foreign else ""))
    return 0


def teacher(arguments: Namespace) -> int:
    """Rows of the oracle's steps."""
    config = _config(arguments)
    instances = _existing(arguments.instances)
    from train.progress import Progress
    from train.teacher import write_teacher_rows

    with Progress("teacher", total=config.teacher.n, unit="episode") as progress:
        report = write_teacher_rows(
            instances,
            arguments.out,
            style=config.teacher.style,
            noise=config.teacher.noise,
            seed=config.seed,
            n=config.teacher.n,
            progress=progress,
        )
    print(f"{arguments.out}: {report['rows']} rows of {report['kept']} episodes; {report['played'] - report['kept']} refused")
    return 0


def pretrain(arguments: Namespace) -> int:
    """The tiny base model."""
    config = _config(arguments)
    from env.navigator.settings import get_profile
    from train.pretrain import pretrain as train_base
    from train.tracking import Tracker

    out = arguments.out
    with Tracker(out.with_name(f"{out.name}.log"), config.tracking, config.to_dict()) as tracker:

        def log(row: dict[str, float]) -> None:
            print(json.dumps(row), flush=True)
            tracker.log({name: value for name, value in row.items() if name != "step"}, step=int(row["step"]))

        print(train_base(get_profile(config.profile), config.pretrain, out, seed=config.seed, log=log))
    return 0


def model(arguments: Namespace) -> int:
    """A packaged model as a folder."""
    _config(arguments)
    from train.smollm2 import convert

    print(convert(arguments.out))
    return 0


def sft(arguments: Namespace) -> int:
    """LoRA on teacher rows, merged."""
    config = _config(arguments, model_path=arguments.model)
    rows = _existing(arguments.rows)
    from train.checks import check_model

    check_model(config.model.path)
    from train.sft import run_sft

    facts = run_sft(config, rows, arguments.out)
    print(f"{arguments.out}/adapter, merged into {arguments.out}/merged: {facts['rows']} rows, loss {facts['loss']:.4f}")
    return 0


def grpo(arguments: Namespace) -> int:
    """LoRA by GRPO."""
    config = _config(arguments, model_path=arguments.model)
    instances = _existing(arguments.instances)
    from train.checks import check_model

    check_model(config.model.path)
    from train.grpo import run_grpo

    facts = run_grpo(config, instances, arguments.out)
    print(f"{arguments.out}/adapter: {facts['steps']} steps on top of {config.model.path}")
    return 0


def evaluate(arguments: Namespace) -> int:
    """Trajectories and a summary of one policy."""
    config = _config(arguments)
    instances = [_existing(path) for path in arguments.instances]
    from env.navigator.policies import POLICIES
    from train.checks import check_adapter, check_model

    if arguments.policy.startswith("exploit:") and arguments.policy not in POLICIES:
        known = ", ".join(name.removeprefix("exploit:") for name in POLICIES if name.startswith("exploit:"))
        raise SettingError(f"--policy {arguments.policy} is unknown: use exploit: and one of {known}")
    if arguments.policy not in POLICIES:
        check_model(arguments.policy)
        if arguments.adapter:
            check_adapter(arguments.adapter, arguments.policy)
    elif arguments.adapter:
        raise InputError(f"--adapter goes with a model, not with the reference policy {arguments.policy}: leave it out")
    from train.evaluate import run_evaluation

    run_evaluation(config, policy=arguments.policy, adapter=arguments.adapter, instances=instances, out=arguments.out)
    return 0


def baselines(arguments: Namespace) -> int:
    """Baselines and the gate; 1 when it complains."""
    config = _config(arguments)
    instances = [_existing(path) for path in arguments.instances]
    from train.checks import check_model

    if arguments.model:
        check_model(arguments.model)
    from train.baselines import gate, run_baselines, table, undecided

    results = run_baselines(config, instances=instances, out=arguments.out, model=arguments.model, n=arguments.n)
    complaints, silent = gate(results), undecided(results)
    print("\n".join([table(results), *silent, *complaints]))
    if complaints:
        print("environment not valid", file=sys.stderr)
        return 1
    print("environment valid" + (", by the readers that can judge" if silent else ""))
    return 0


def replay(arguments: Namespace) -> int:
    """Recorded responses through the environment."""
    _config(arguments)
    instances, actions = _existing(arguments.instances), _existing(arguments.actions)
    from env.navigator.replay import replay as replay_files

    replay_files(instances, actions, arguments.out)
    return 0


def recount(arguments: Namespace) -> int:
    """Instances in a model's own tokens."""
    _config(arguments)
    instances = _existing(arguments.instances)
    from env.navigator.recount import recount_file

    report = recount_file(instances, arguments.out, tokens=arguments.tokens, ceiling=arguments.ceiling, summary_cap=arguments.summary_cap)
    print(
        f"{arguments.out}: {report['instances']} instances, {report['ratio']:.3f} tokens of {arguments.tokens} for one recorded; "
        f"ceiling {report['ceiling']}, summaries up to {report['summary_cap']}; {report['without_compression']} need no compression"
    )
    return 0


def audit(arguments: Namespace) -> int:
    """Five probes of trajectories."""
    from train.trace_reports import audit_files

    return _figures(arguments, audit_files)


def diagnose(arguments: Namespace) -> int:
    """Where the steps go."""
    from train.trace_reports import diagnose_files

    return _figures(arguments, diagnose_files)


def _figures(arguments: Namespace, look: Callable[[Sequence[Path], Sequence[Path]], dict[str, dict[str, Any]]]) -> int:
    """Write what `look` finds in trajectories where it is wanted, and print it in any case."""
    _config(arguments)
    files, instances = [[_existing(path) for path in paths] for paths in (arguments.files, arguments.instances)]
    from env.files import atomic_write
    from train.figures import table

    found = look(files, instances)
    if arguments.out is not None:
        with atomic_write(arguments.out) as stream:
            stream.write(json.dumps(found, indent=2) + "\n")
    print("\n\n".join(f"{name}\n{table(splits)}" for name, splits in found.items()))
    return 0


def inspect(arguments: Namespace) -> int:
    """An instance, or a file of them, as a page."""
    _config(arguments)
    path = _existing(arguments.file)
    if arguments.id is None:
        from train.split_page import write_split_page

        print(f"{arguments.out}: {write_split_page(path, arguments.out)} instances")
    else:
        from train.instance_page import find_instance, write_instance_page

        write_instance_page(find_instance(path, arguments.id), arguments.out)
        print(arguments.out)
    return 0


def report(arguments: Namespace) -> int:
    """report.html and results.json of a run."""
    _config(arguments)
    folder = _existing(arguments.run)
    from train.report import write_report

    print(write_report(folder))
    return 0


def bench(arguments: Namespace) -> int:
    """One measurement."""
    config = _config(arguments)
    from train.bench import BENCHES

    result = BENCHES[arguments.part](config)
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:30} {value}")
    return 0


def _config(arguments: Namespace, *, profile: str | None = None, model_path: str | None = None) -> "Config":
    """The settings of a command; its own options win over --set."""
    from train.config import load_config

    own = [f"profile={json.dumps(profile)}"] * bool(profile) + [f"model.path={json.dumps(model_path)}"] * bool(model_path)
    return load_config(arguments.config, [*arguments.set, *own])


def _existing(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    return path
