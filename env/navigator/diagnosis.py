"""Where the steps of one episode go.

The chunk that is *wanted* is that of the first hop whose evidence has not been read yet. A chunk that is read is

    re-read        read before
    on-target      the wanted one
    out of order   evidence of a later hop: no policy that follows the chain can have meant it
    off-target     any other

in this order. An off-target read is compared with chance: a chunk drawn uniformly from all those that would have been
off-target at that moment. Pure counting: one Diagnosis an episode, no means and no intervals.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from env.errors import InputError
from env.navigator.actions import Verb
from env.navigator.instance import Instance
from env.navigator.traces import Trace, TracedStep


class Use(StrEnum):
    """What a step was spent on."""

    ON_TARGET = "on-target read"
    REREAD = "re-read"
    OUT_OF_ORDER = "out-of-order read"
    OFF_TARGET = "off-target read"
    COMPRESS = "compress"
    DROP = "drop"
    ANSWER = "answer"
    INVALID = "invalid"
    """No action."""
    REFUSED = "refused"
    """Of a chunk that is not there or is held already, or of an item that is not held."""
    CEILING = "over the ceiling"
    """The end of the episode."""


READS = (Use.ON_TARGET, Use.REREAD, Use.OUT_OF_ORDER, Use.OFF_TARGET)
_WASTED = (Use.REREAD, Use.OFF_TARGET, Use.INVALID, Use.REFUSED)
_ERRORS = {"parse": Use.INVALID, "ceiling": Use.CEILING}


@dataclass(frozen=True, kw_only=True, slots=True)
class Miss:
    """An off-target read while a chunk was wanted."""

    wrong_section: bool
    distance: int | None
    """From the wanted chunk in its section, 1 for a neighbour; None in another section."""
    chance_wrong_section: float
    """What a uniform draw gives."""
    chance_distance: float | None
    """Mean of a uniform draw inside the section; None when the section has nothing to draw."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """One step."""

    use: Use
    hop: int | None
    """The hop that was wanted, from 1; None after the whole chain was read."""
    miss: Miss | None
    """Of an off-target read with a wanted chunk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """Where the steps of one episode went."""

    steps: tuple[Spent, ...]
    hops_resolved: int
    """Hops of the chain, from its beginning, whose chunk has been read."""
    hops_needed: int
    wasted: int
    """Re-reads, off-target reads, invalid and refused steps, and every COMPRESS and DROP over those that min_steps counts."""


def diagnose(trace: Trace) -> Diagnosis:
    """Where the steps of one episode went. InputError for an instance without recorded evidence."""
    instance = trace.instance
    chain = [found.chunk_idx for found in instance.evidence]
    if not chain:
        raise InputError(f"instance {instance.id!r} records no evidence: without it no read can be called on-target")
    read: set[int] = set()
    steps = []
    for step in trace.steps:
        steps.append(_spent(instance, chain, read, step))
        if step.did == Verb.READ:
            read.add(int(step.result.ids[0]))
    uses = Counter(spent.use for spent in steps)
    tidying = instance.min_steps - len(chain) - 1
    wanted = _wanted(chain, read)
    return Diagnosis(
        steps=tuple(steps),
        hops_resolved=len(chain) if wanted is None else wanted,
        hops_needed=len(chain),
        wasted=sum(uses[use] for use in _WASTED) + max(0, uses[Use.COMPRESS] + uses[Use.DROP] - tidying),
    )


def _wanted(chain: list[int], read: set[int]) -> int | None:
    """Position in the chain of the first chunk not yet read."""
    return next((hop for hop, chunk in enumerate(chain) if chunk not in read), None)


def _spent(instance: Instance, chain: list[int], read: set[int], step: TracedStep) -> Spent:
    """One step; `read` is what had been read before it."""
    wanted = _wanted(chain, read)
    use, miss = _ERRORS.get(step.result.error or "", Use.REFUSED), None
    if step.did == Verb.READ:
        chunk = int(step.result.ids[0])
        if chunk in read:
            use = Use.REREAD
        elif wanted is not None and chunk == chain[wanted]:
            use = Use.ON_TARGET
        elif chunk in chain:
            use = Use.OUT_OF_ORDER
        else:
            use = Use.OFF_TARGET
            miss = None if wanted is None else _miss(instance, chain[wanted], chunk, read.union(chain))
    elif step.did is not None:
        use = {Verb.COMPRESS: Use.COMPRESS, Verb.DROP: Use.DROP, Verb.ANSWER: Use.ANSWER}[Verb(step.did)]
    return Spent(use=use, hop=None if wanted is None else wanted + 1, miss=miss)


def _miss(instance: Instance, wanted: int, chunk: int, excluded: set[int]) -> Miss:
    """`excluded` would not have been off-target."""
    section = [c.idx for c in instance.chunks if c.section == instance.chunks[wanted].section]
    place = {idx: at for at, idx in enumerate(section)}
    drawn = [c.idx for c in instance.chunks if c.idx not in excluded]
    distances = [abs(place[idx] - place[wanted]) for idx in drawn if idx in place]
    return Miss(
        wrong_section=chunk not in place,
        distance=abs(place[chunk] - place[wanted]) if chunk in place else None,
        chance_wrong_section=1 - len(distances) / len(drawn),
        chance_distance=sum(distances) / len(distances) if distances else None,
    )


def reads_by_hop(diagnosis: Diagnosis) -> Iterator[tuple[int, list[Use], bool]]:
    """(hop, the reads made while it was wanted, whether it was resolved) of every hop that was ever wanted."""
    for hop in range(1, min(diagnosis.hops_resolved + 1, diagnosis.hops_needed) + 1):
        reads = [spent.use for spent in diagnosis.steps if spent.hop == hop and spent.use in READS]
        yield hop, reads, hop <= diagnosis.hops_resolved
