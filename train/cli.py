"""The command `navigator`: parse first, import heavy libraries second, so that --help answers at once.

What goes wrong ends in one of three ways: a user's mistake or a full disk is one line and exit 2 (3 when the
engine died), Ctrl-C is one line and exit 130, and anything else is a bug and keeps its traceback.
"""

import argparse
import errno
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from env.errors import NavigatorError
from train import commands

FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = build_parser().parse_args(argv)
    try:
        return arguments.command(arguments)
    except NavigatorError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted; what was finished is kept, the same command goes on from there", 130)
    except Exception as error:
        if _disk_is_full(error):
            return _fail(f"no space left on the disk ({error}); free some and run the same command again", 2)
        if isinstance(error, OSError) and error.errno in REFUSED:
            return _fail(f"{error.filename}: {error.strerror}; choose another path", 2)
        raise


def _fail(message: str, code: int) -> int:
    print("navigator: error: " + " ".join(message.split()), file=sys.stderr, flush=True)
    return code


def _disk_is_full(error: BaseException | None) -> bool:
    """Also where a library wraps the system's error in one of its own, as safetensors does."""
    while error is not None:
        if (isinstance(error, OSError) and error.errno in FULL) or "No space left on device" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Parser(argparse.ArgumentParser):
    """Says a wrong argument in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"navigator: error: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """Every command and option; imports nothing heavy."""
    parser = _Parser(prog="navigator", description="Train small language models to navigate documents larger than what they may hold.")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(name, help=text, description=text)
        sub.add_argument("--config", type=Path, metavar="FILE", help="YAML settings over the defaults")
        sub.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, as grpo.learning_rate=2e-5; repeatable"
        )
        sub.set_defaults(command=run)
        return sub

    sub = command("run", commands.run, "the whole chain, from instances to the report; goes on where it was stopped")
    _out(sub, "folder of the run")

    sub = command("generate", commands.generate, "write validated instances of a split and a report beside them")
    sub.add_argument("--profile", help="v1 or laptop (default: the configuration's)")
    sub.add_argument("--split", required=True, help="train, dev, id_test, ood_test; v1 also scale_test")
    sub.add_argument("--n", type=_count, help="instances (default: the split's size)")
    sub.add_argument("--start", type=_index, default=0, help="index of the first one (default: 0)")
    sub.add_argument("--workers", type=_count, help="processes (default: the cores; the bytes are the same)")
    _out(sub, "instance file; .gz or .zst compresses", "FILE")

    sub = command("validate", commands.validate, "check instance files again from their text; exit 1 when one fails")
    sub.add_argument("files", type=Path, nargs="+", metavar="FILE")

    sub = command("teacher", commands.teacher, "write rows of the oracle's steps for SFT")
    _instances(sub)
    _out(sub, "file of rows", "FILE")

    sub = command("pretrain", commands.pretrain, "train the tiny base model from scratch on register text")
    _out(sub, "model folder")

    sub = command("model", commands.model, "turn a packaged pretrained model into a model folder")
    sub.add_argument("name", choices=["smollm2"])
    _out(sub, "model folder")

    sub = command("sft", commands.sft, "fine-tune a LoRA on teacher rows and merge it into the base")
    sub.add_argument("--rows", type=Path, required=True, metavar="FILE", help="rows from `navigator teacher`")
    _model(sub)
    _out(sub, "folder of the adapter and of the merged model")

    sub = command("grpo", commands.grpo, "train a fresh LoRA by GRPO on rollouts in the environment")
    _instances(sub)
    _model(sub)
    _out(sub, "folder of the adapter and its metrics")

    sub = command("evaluate", commands.evaluate, "play instances with a policy; trajectories and a summary")
    sub.add_argument("--policy", required=True, help="oracle, random, no-read, exploit:NAME, a model folder or a hub name")
    sub.add_argument("--adapter", type=Path, metavar="DIR", help="LoRA on that model")
    _instances(sub, several=True)
    _out(sub, "folder of trajectories.jsonl and summary.json")

    sub = command("baselines", commands.baselines, "what is answered without navigating; exit 1 when the environment is not valid")
    _instances(sub, several=True)
    sub.add_argument("--model", metavar="MODEL", help="model folder or hub name (default: the mechanical baselines alone)")
    sub.add_argument("--n", type=_count, help="instances of each file (default: all)")
    _out(sub, "folder of baselines.json and the model's replies")

    sub = command("replay", commands.replay, "play recorded responses and say what each step did")
    _instances(sub)
    sub.add_argument("--actions", type=Path, required=True, metavar="FILE", help='rows {"instance_id", "responses": [text, ...]}')
    _out(sub, "file of results", "FILE")

    sub = command("recount", commands.recount, "write instances again, charged in the tokens of a model's own tokenizer")
    _instances(sub)
    sub.add_argument("--tokens", required=True, metavar="MODEL", help="model folder or hub name")
    sub.add_argument("--ceiling", type=_count, help="most tokens held (default: the file's largest chunk and a summary)")
    sub.add_argument("--summary-cap", type=_count, help="longest summary (default: the recorded one by the file's mean ratio)")
    _out(sub, "instance file; .gz or .zst compresses", "FILE")

    for name, run, text in (
        ("audit", commands.audit, "five probes of the episodes in trajectories: leaks, summaries, re-reads, known distractors"),
        ("diagnose", commands.diagnose, "where the steps of the episodes in trajectories go"),
    ):
        sub = command(name, run, text)
        sub.add_argument("files", type=Path, nargs="+", metavar="FILE", help="trajectories, or rows as for --actions of replay")
        _instances(sub, several=True)
        sub.add_argument("--out", type=Path, metavar="FILE", help="the same figures as JSON")

    sub = command("inspect", commands.inspect, "write an instance, or a whole file of them, as a page")
    sub.add_argument("file", type=Path, metavar="FILE", help="from `navigator generate`")
    sub.add_argument("--id", metavar="ID", help="instance to show (default: a summary of all)")
    _out(sub, "page, self-contained HTML", "FILE")

    sub = command("report", commands.report, "write report.html and results.json of a run again")
    sub.add_argument("run", type=Path, metavar="DIR", help="folder of the run")

    sub = command("bench", commands.bench, "measure a part of the system on this machine")
    sub.add_argument("part", choices=["generate", "env", "rollout", "update"])
    sub.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _out(sub: argparse.ArgumentParser, text: str, metavar: str = "DIR") -> None:
    sub.add_argument("--out", type=Path, required=True, metavar=metavar, help=text)


def _model(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--model", metavar="DIR", help="model folder or hub name to start from (default: model.path)")


def _instances(sub: argparse.ArgumentParser, *, several: bool = False) -> None:
    sub.add_argument(
        "--instances", type=Path, required=True, nargs="+" if several else None, metavar="FILE", help="from `navigator generate`"
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _index(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number


if __name__ == "__main__":
    sys.exit(main())
