"""Reference policies: the privileged oracle, a random reader, one that never reads, and every exploit by its name.

A policy is made anew for every episode from a seed, looks at the episode itself instead of its prompt, and
writes responses like any model. The oracle knows the chain; what it *says* is checked by the teacher's filter.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from env.navigator.episode import NavigatorEpisode
from env.navigator.exploits import EXPLOITS, Exploiter
from env.navigator.grammar import read_chunk
from env.navigator.instance import Chunk, Evidence
from env.navigator.teacher import answer_response, compress_response, drop_response, read_response

Policy = Callable[[NavigatorEpisode], str]

_RANDOM_READS = 3


class Oracle:
    """Takes exactly min_steps; `noise` is the chance of a wrong chunk, read and dropped again, before each READ."""

    def __init__(self, seed: int, *, noise: float = 0.0, style: str = "derive") -> None:
        self.random = Random(seed).random
        self.noise, self.style = noise, style
        self.hop = 0
        """Evidence read so far."""
        self.detour: int | None = None
        """A chunk that was read by mistake and is still held."""

    def __call__(self, episode: NavigatorEpisode) -> str:
        chain = episode.instance.evidence
        if self.detour is not None:
            chunk, self.detour = self.detour, None
            return drop_response(wanted=chain[self.hop].entity, field=chain[self.hop].field, chunk=chunk)
        if self.hop == len(chain):
            last = chain[-1]
            return answer_response(entity=last.entity, field=last.field, value=last.value)
        target = episode.instance.chunks[chain[self.hop].chunk_idx]
        free = episode.rules.ceiling - episode.used
        if target.tokens > free:
            done = chain[self.hop - 1]
            held = list(episode.held)
            return compress_response(held=held, entity=done.entity, field=done.field, value=done.value, following=chain[self.hop].field)
        if self.random() < self.noise and (wrong := self._wrong(episode, target, free)) is not None:
            self.detour = wrong.idx
            return self._read(chain[self.hop], wrong)
        self.hop += 1
        return self._read(chain[self.hop - 1], target)

    def _read(self, evidence: Evidence, chunk: Chunk) -> str:
        return read_response(
            self.style,
            wanted=evidence.entity,
            field=evidence.field,
            section=chunk.section,
            first=chunk.entity_names[0],
            last=chunk.entity_names[-1],
            chunk=chunk.idx,
        )

    def _wrong(self, episode: NavigatorEpisode, target: Chunk, free: int) -> Chunk | None:
        """Another chunk, of the same section where there is one, that fits and can be dropped in time."""
        left = episode.budget - episode.steps_used
        if left < 2 * (len(episode.instance.evidence) - self.hop) + 2:
            return None
        others = [c for c in episode.instance.chunks if c.kind == "register" and c is not target and c.tokens <= free]
        others = [c for c in others if str(c.idx) not in episode.held]
        near = [c for c in others if c.section == target.section] or others
        return near[int(self.random() * len(near))] if near else None


class RandomReader:
    """Reads three random chunks, one at a time, and answers with a value of the wanted field seen in them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random
        self.reads = 0
        self.seen: list[str] = []

    def __call__(self, episode: NavigatorEpisode) -> str:
        held = list(episode.held)
        if held:
            chunk = episode.instance.chunks[int(held[0])]
            wanted = episode.instance.answer_type
            self.seen += [entry.fields[wanted].current for entry in read_chunk(chunk.text) if wanted in entry.fields]
            return f"ACTION: DROP {held[0]}"
        if self.reads == _RANDOM_READS:
            return f"ACTION: ANSWER {self.seen[int(self.random() * len(self.seen))] if self.seen else 'none seen'}"
        self.reads += 1
        return f"ACTION: READ {int(self.random() * len(episode.instance.chunks))}"


class NoRead:
    """Answers at once with a number of the usual size."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def __call__(self, episode: NavigatorEpisode) -> str:
        return f"ACTION: ANSWER {1000 + int(self.random() * 9000)}"


POLICIES: dict[str, Callable[[int], Policy]] = {
    "oracle": Oracle,
    "random": RandomReader,
    "no-read": NoRead,
    **{f"exploit:{name}": partial(Exploiter, strategy) for name, strategy in EXPLOITS.items()},
}
