"""`navigator audit` and `navigator diagnose`: the facts of every episode in a file, as figures by split.

Everything is a figure per EPISODE: a share of reads is the mean over episodes of the share in each, so that a long
episode weighs no more than a short one. Two files are two policies and never mixed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from env.errors import InputError
from env.navigator.diagnosis import READS, Diagnosis, Use, diagnose, reads_by_hop
from env.navigator.instance import Instance
from env.navigator.probes import FIFTHS, Degenerate, Probe, probe
from env.navigator.traces import Trace, known_instances, read_traces
from env.protocol import Ending
from train.figures import Groups, Values, measure

_SHUFFLES = 2000


@dataclass(slots=True)
class _Split:
    """Facts of the episodes of one split, in the order of the file."""

    clusters: list[str] = field(default_factory=list)
    """Instance of each episode."""
    endings: list[Ending | None] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    differing: int = 0
    """Episodes whose recorded reward is another one than they earn now."""
    facts: list[Any] = field(default_factory=list)
    """Probes or diagnoses."""


def audit_files(files: Sequence[Path], instances: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """file -> split -> group -> figure of the five probes. InputError for a row that cannot be played."""
    return _report(files, instances, probe, _audit)


def diagnose_files(files: Sequence[Path], instances: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """file -> split -> group -> figure of where the steps go. InputError for a row that cannot be played."""
    return _report(files, instances, diagnose, _diagnosis)


def _report(
    files: Sequence[Path], instances: Sequence[Path], look: Callable[[Trace], Any], figures: Callable[[_Split], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    known = known_instances(instances)
    return {
        str(path): {split: _episodes(own) | figures(own) for split, own in _splits(path, known, look).items()}
        for path in dict.fromkeys(files)
    }


def _splits(path: Path, known: Mapping[str, Instance], look: Callable[[Trace], Any]) -> dict[str, _Split]:
    splits: dict[str, _Split] = {}
    for trace in read_traces(path, known):
        own = splits.setdefault(trace.instance.split, _Split())
        own.clusters.append(trace.instance.id)
        own.endings.append(trace.episode.ending)
        own.correct.append(trace.episode.correct)
        own.steps.append(trace.episode.steps_used)
        own.differing += not trace.agrees
        own.facts.append(look(trace))
    if not splits:
        raise InputError(f"{path}: no trajectory in it")
    return splits


def _episodes(own: _Split) -> dict[str, Any]:
    """What is said of every file."""
    values: dict[str, Values] = {"accuracy": own.correct}
    values |= {ending.value: [found is ending for found in own.endings] for ending in Ending}
    values |= {"unfinished": [found is None for found in own.endings], "steps": own.steps}
    counts = {"episodes": len(own.clusters), "instances": len(set(own.clusters)), "reward_unlike_recorded": own.differing}
    return {"episodes": counts | measure({"": values}, own.clusters)[""]}


def _audit(own: _Split) -> dict[str, Any]:
    probes: list[Probe] = own.facts
    kinds = sorted({p.captured_by for p in probes if p.captured_by is not None})
    groups: Groups = {
        "1_answers_without_reading": {
            "read_nothing": [p.reads_nothing for p in probes],
            "accuracy_of_those": [p.correct_unread for p in probes],
        },
        "2_accuracy_by_position_of_the_answer": {
            f"fifth_{fifth + 1}_of_the_document": [p.correct if p.answer_fifth == fifth else None for p in probes]
            for fifth in range(FIFTHS)
        },
        "3_summaries": {
            "summaries": [p.summaries for p in probes],
            "facts_kept": [p.facts_kept for p in probes],
            "degenerate": [p.degenerate for p in probes],
            **{f"degenerate:_{kind}": [_part(p.degenerate_kinds.count(kind), p.summaries) for p in probes] for kind in Degenerate},
        },
        "4_reads": {
            "reads_over_the_minimum": [p.reads_over_min for p in probes],
            "re-reads": [p.rereads for p in probes],
            "re-read_something": [p.rereads > 0 for p in probes],
            "re-read_what_it_had_compressed": [p.reread_compressed for p in probes],
        },
        "5_wrong_answers": {
            "answered_wrongly": [p.captured is not None for p in probes],
            "a_known_distractor_of_those": [p.captured for p in probes],
            **{kind: [None if p.captured is None else p.captured_by == kind for p in probes] for kind in kinds},
        },
    }
    found = measure(groups, own.clusters)
    found["2_accuracy_by_position_of_the_answer"]["spread"] = _spread(probes, own.clusters)
    return found


def _spread(probes: Sequence[Probe], clusters: Sequence[str], seed: int = 0) -> dict[str, Any]:
    """Largest less smallest accuracy of a fifth; `chance` is its 95th percentile when positions are shuffled among instances."""
    placed = [(p.answer_fifth, p.correct, cluster) for p, cluster in zip(probes, clusters, strict=True) if p.answer_fifth is not None]
    order = {cluster: at for at, cluster in enumerate(dict.fromkeys(cluster for _, _, cluster in placed))}
    if not order:
        return {"value": None, "chance": None, "n": 0}
    instance_E = np.array([order[cluster] for _, _, cluster in placed])
    correct_E = np.array([float(correct) for _, correct, _ in placed])
    fifth_I = np.zeros(len(order), dtype=int)
    for fifth, _, cluster in placed:
        fifth_I[order[cluster]] = fifth

    def spread(fifth_I: np.ndarray) -> float:
        fifth_E = fifth_I[instance_E]
        counts = np.bincount(fifth_E, minlength=FIFTHS)
        means = np.bincount(fifth_E, weights=correct_E, minlength=FIFTHS)[counts > 0] / counts[counts > 0]
        return float(means.max() - means.min())

    generator = np.random.default_rng(seed)
    shuffled = [spread(generator.permutation(fifth_I)) for _ in range(_SHUFFLES)]
    return {"value": spread(fifth_I), "chance": float(np.quantile(shuffled, 0.95)), "n": len(placed)}


def _diagnosis(own: _Split) -> dict[str, Any]:
    found: list[Diagnosis] = own.facts
    uses = [Counter(spent.use for spent in d.steps) for d in found]
    reads = [sum(counts[use] for use in READS) for counts in uses]
    misses = [[spent.miss for spent in d.steps if spent.miss is not None] for d in found]
    inside = [[miss for miss in own if miss.distance is not None and miss.chance_distance is not None] for own in misses]
    groups: Groups = {
        "steps_of_an_episode": {
            **{_name(use): [counts[use] for counts in uses] for use in Use},
            "wasted": [d.wasted for d in found],
        },
        "share_of_an_episode's_reads": {
            _name(use): [_part(counts[use], n) for counts, n in zip(uses, reads, strict=True)] for use in READS
        },
        "off-target_reads": {
            "in_a_wrong_section": [_mean([float(m.wrong_section) for m in own]) for own in misses],
            "by_chance": [_mean([m.chance_wrong_section for m in own]) for own in misses],
            "distance_in_the_right_section": [_mean([float(m.distance or 0) for m in own]) for own in inside],
            "distance_by_chance": [_mean([m.chance_distance or 0.0 for m in own]) for own in inside],
        },
        "hops": {
            "needed": [d.hops_needed for d in found],
            "resolved": [d.hops_resolved for d in found],
            "all_resolved": [d.hops_resolved == d.hops_needed for d in found],
        },
        "hop_by_hop": _hop_by_hop(found),
    }
    return measure(groups, own.clusters)


def _hop_by_hop(found: Sequence[Diagnosis]) -> dict[str, Values]:
    """Of the episodes that wanted a hop's chunk: were they to find it, and how many of their reads for it missed?"""
    by_hop = [{hop: (reads, resolved) for hop, reads, resolved in reads_by_hop(d)} for d in found]
    values: dict[str, Values] = {}
    for hop in range(1, max(d.hops_needed for d in found) + 1):
        own = [hops.get(hop) for hops in by_hop]
        values[f"hop_{hop}_resolved_once_wanted"] = [None if o is None else o[1] for o in own]
        values[f"hop_{hop}_reads_off_target"] = [None if o is None else _part(o[0].count(Use.OFF_TARGET), len(o[0])) for o in own]
    return values


def _name(use: Use) -> str:
    return use.value.replace(" ", "_")


def _part(count: int, whole: int) -> float | None:
    return count / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
