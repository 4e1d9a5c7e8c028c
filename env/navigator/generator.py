"""Makes one instance from (profile, split, index, attempt), and nothing else.

Uninformative by construction: every register is cut into chunks first, every chunk gets the same number of
twins and a length from one distribution, then the evidence chunk is drawn uniformly over the chunks of its
register and the entity inside it. Drawing entities directly would favour chunks with more entries.

Only Random.random() is used, whose stream is the same on every machine and Python version.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate
from random import Random
from typing import TypeVar

from env.navigator import grammar
from env.navigator.grammar import Value
from env.navigator.instance import Chunk, Distractor, Evidence, Instance
from env.navigator.settings import Settings, get_split
from env.navigator.tokens import count_tokens
from env.navigator.vocabulary import FILLER, NOISE_SECTIONS, REGISTERS, YEARS, Attribute, Register

T = TypeVar("T")

VERSION = 2
"""Raised whenever the same (split, index) would give other bytes."""

_SPREAD = 0.04
"""Values of one attribute inside a chunk lie within this share of their centre."""
_MIN_NOTE = 2
"""Tokens of the shortest note: one word and the full stop."""
_FILLER_OF_LENGTH = {size: [clause for clause in FILLER if len(clause.split()) == size] for size in range(1, 8)}
_TAPE_CLAUSES = 4096


@dataclass(slots=True)
class _Record:
    """An entity while its document is being made."""

    register: Register
    name: str
    base: str
    """The name without a twin's suffix."""
    chunk: int
    """Index of its chunk within the register."""
    link: Value
    link_years: tuple[int, int] | None
    values: tuple[Value, Value]
    value_years: tuple[tuple[int, int] | None, tuple[int, int] | None]
    state: str
    text: str = ""
    """The entry without the filler of its notes."""

    def fixed_text(self) -> str:
        """The entry without the filler of its notes."""
        first, second = self.register.attributes
        return (
            f"{self.name} — {self.register.link}: {grammar.write_value(self.link, self.link_years)}. "
            f"{first.name}: {grammar.write_value(self.values[0], self.value_years[0])}. "
            f"{second.name}: {grammar.write_value(self.values[1], self.value_years[1])}. "
            f"{self.register.status}: {self.state}. Notes: "
        )


class _Dice:
    """Draws on top of Random.random()."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def below(self, n: int) -> int:
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random() * len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        order = list(items)
        for i in range(len(order) - 1, 0, -1):
            j = int(self.random() * (i + 1))
            order[i], order[j] = order[j], order[i]
        return order

    def distinct(self, n: int, total: int) -> list[int]:
        """`n` different numbers below `total`, ascending."""
        chosen: set[int] = set()
        while len(chosen) < n:
            chosen.add(int(self.random() * total))
        return sorted(chosen)

    def years(self) -> tuple[int, int]:
        start = self.between(YEARS[0], YEARS[1] - 1)
        return start, self.between(start + 1, YEARS[1])


def instance_seed(settings: Settings, split: str, index: int, attempt: int) -> int:
    """The 63-bit seed behind one attempt at one instance."""
    text = f"{VERSION}/{settings.profile}/{split}/{index}/{attempt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


class _Tape:
    """Clauses in a fixed random order, that pieces are cut from: drawing each clause takes most of a generator's time."""

    def __init__(self, clauses: int, longest: int) -> None:
        """`longest` bounds the words of a clause."""
        dice = _Dice(0)
        drawn = [dice.pick(_FILLER_OF_LENGTH[dice.between(1, longest)]) for _ in range(clauses)]
        self.text = "".join(f"{clause}; " for clause in drawn)
        self.tokens = list(accumulate((len(clause.split()) + 1 for clause in drawn), initial=0))
        """Tokens before each clause; its semicolon counts."""
        self.starts = list(accumulate((len(clause) + 2 for clause in drawn), initial=0))
        """Characters before each clause."""


@cache
def _tape() -> _Tape:
    # A clause and its semicolon are at most 7 tokens, so a cut leaves 2 to 8 for the last clause and the full stop.
    return _Tape(_TAPE_CLAUSES, longest=6)


def make_filler(dice: _Dice, tokens: int) -> str:
    """Filler of exactly `tokens` tokens (2 to 4,000), its full stop included."""
    if tokens <= 8:
        return f"{dice.pick(_FILLER_OF_LENGTH[tokens - 1])}."
    tape = _tape()
    first = dice.below(_TAPE_CLAUSES // 2)
    goal = tape.tokens[first] + tokens
    last = bisect_left(tape.tokens, goal - 8, first)
    return f"{tape.text[tape.starts[first] : tape.starts[last]]}{dice.pick(_FILLER_OF_LENGTH[goal - tape.tokens[last] - 1])}."


class _Document:
    """A document under construction."""

    def __init__(self, settings: Settings, dice: _Dice, target: int) -> None:
        self.settings, self.dice = settings, dice
        lengths: list[int] = []
        while sum(lengths) < target:
            lengths.append(dice.between(*settings.chunk_tokens))
        noise = round(settings.noise_share * len(lengths))
        self.noise_lengths = lengths[:noise]
        per_register, extra = divmod(len(lengths) - noise, len(REGISTERS))
        lucky = set(dice.shuffled(range(len(REGISTERS)))[:extra])
        rest = iter(lengths[noise:])
        self.lengths = [[next(rest) for _ in range(per_register + (i in lucky))] for i in range(len(REGISTERS))]
        self.used_numbers: dict[str, set[int]] = {attribute.name: set() for register in REGISTERS for attribute in register.attributes}
        self.groups = [self._names(register, len(self.lengths[i])) for i, register in enumerate(REGISTERS)]
        self.base_names = [[name for group in groups for name, base in group if name == base] for groups in self.groups]
        self.spare: dict[tuple[int, int], int] = {}
        """Tokens left for longer notes in chunks of registers; pointing a link elsewhere keeps them, every base name is two words."""
        self.records = [self._register(i) for i in range(len(REGISTERS))]

    def _names(self, register: Register, n_chunks: int) -> list[list[tuple[str, str]]]:
        """(name, base name) of every entry of every chunk of a register, sorted, twins beside their originals."""
        settings, dice = self.settings, self.dice
        sizes = [dice.between(*settings.entries) - settings.twins for _ in range(n_chunks)]
        step = max(1, len(register.first) // settings.names)
        first, second = register.first[::step], register.second[::step]
        picked = dice.distinct(sum(sizes), len(first) * len(second))
        names = iter([f"{first[i // len(second)]} {second[i % len(second)]}" for i in picked])
        groups = []
        for size in sizes:
            group = []
            twinned = set(dice.distinct(settings.twins, size))
            for position in range(size):
                name = next(names)
                group.append((name, name))
                if position in twinned:
                    group.append((f"{name} {dice.pick(register.suffixes)}", name))
            groups.append(group)
        return groups

    def _number(self, attribute: Attribute, centre: float) -> int:
        """A number near `centre` that no other field of this attribute shows."""
        used, random, spread = self.used_numbers[attribute.name], self.dice.random, _SPREAD
        while (number := round(centre * (1 + spread * (2 * random() - 1)))) in used:
            spread *= 1.02
        used.add(number)
        return number

    def _value(self, attribute: Attribute, centre: float) -> Value:
        current = grammar.write_number(attribute, self._number(attribute, centre))
        if self.dice.random() >= self.settings.superseded_value:
            return Value(current)
        return Value(current, grammar.write_number(attribute, self._number(attribute, centre)))

    def _years(self, value: Value) -> tuple[int, int] | None:
        if value.old is None or self.dice.random() >= 0.5:
            return None
        return self.dice.years()

    def _link(self, targets: list[str], taken: str | None) -> Value:
        """A link to one of `targets`; a twin's differs from that of its original (`taken`)."""
        random, n = self.dice.random, len(targets)
        while (current := targets[int(random() * n)]) == taken:
            pass
        if random() >= self.settings.superseded_link:
            return Value(current)
        while (old := targets[int(random() * n)]) == current:
            pass
        return Value(current, old)

    def _register(self, i: int) -> list[list[_Record]]:
        return [self._chunk(i, chunk, group) for chunk, group in enumerate(self.groups[i])]

    def _chunk(self, i: int, chunk: int, group: list[tuple[str, str]]) -> list[_Record]:
        """The entries of one chunk, drawn again as a whole until they leave room for notes in its length."""
        register, dice, settings = REGISTERS[i], self.dice, self.settings
        targets = self.base_names[(i + 1) % len(REGISTERS)]
        header = count_tokens(self.header(i, chunk))
        while True:
            centres = []
            for attribute in register.attributes:
                low, high = (attribute.short_low, attribute.short_high) if settings.short_values else (attribute.low, attribute.high)
                centres.append(low * 1.1 + dice.random() * (high / 1.1 - low * 1.1))
            records: list[_Record] = []
            for name, base in group:
                link = self._link(targets, records[-1].link.current if name != base else None)
                values = (self._value(register.attributes[0], centres[0]), self._value(register.attributes[1], centres[1]))
                years = (self._years(values[0]), self._years(values[1]))
                record = _Record(register, name, base, chunk, link, self._years(link), values, years, dice.pick(register.states))
                record.text = record.fixed_text()
                records.append(record)
            fixed = header + count_tokens("\n".join([record.text for record in records]))
            spare = self.lengths[i][chunk] - fixed - _MIN_NOTE * len(records)
            if spare >= 0:
                self.spare[i, chunk] = spare
                return records

    def header(self, i: int, chunk: int) -> str:
        """First line of a register chunk."""
        group = self.groups[i][chunk]
        return f"{REGISTERS[i].section} · {group[0][0]} – {group[-1][0]}"

    def register_text(self, i: int, chunk: int) -> str:
        """Text of a register chunk, padded by notes to its length."""
        records, header = self.records[i][chunk], self.header(i, chunk)
        spare = self.spare[i, chunk]
        cuts = sorted(self.dice.between(0, spare) for _ in records[1:])
        lines = [header]
        for record, low, high in zip(records, [0, *cuts], [*cuts, spare], strict=True):
            lines.append(record.text + make_filler(self.dice, _MIN_NOTE + high - low))
        return "\n".join(lines)

    def noise_text(self, section: str, part: int, tokens: int) -> str:
        """A noise chunk of exactly `tokens` tokens."""
        header = f"{section} · part {part}"
        lines, left = [header], tokens - count_tokens(header)
        while left > 0:
            size = left if left <= 90 else self.dice.between(40, 70)
            who = self.dice.pick(self.base_names[1])
            lines.append(f"{who}: {make_filler(self.dice, size - 3)}" if size > 8 else make_filler(self.dice, size))
            left -= size
        return "\n".join(lines)

    def lay_out(self) -> list[Chunk]:
        """Every chunk, sections in random order."""
        shares: list[list[int]] = [self.noise_lengths[k :: len(NOISE_SECTIONS)] for k in range(len(NOISE_SECTIONS))]
        sections = [("register", i) for i in range(len(REGISTERS))] + [("noise", k) for k, share in enumerate(shares) if share]
        chunks: list[Chunk] = []
        self.first_chunk: dict[int, int] = {}
        for kind, i in self.dice.shuffled(sections):
            if kind == "register":
                self.first_chunk[i] = len(chunks)
            for part in range(len(self.lengths[i] if kind == "register" else shares[i])):
                if kind == "register":
                    text = self.register_text(i, part)
                    names = [name for name, _ in self.groups[i][part]]
                    section, tokens, header = REGISTERS[i].section, self.lengths[i][part], self.header(i, part)
                else:
                    section, tokens, names = NOISE_SECTIONS[i], shares[i][part], []
                    text = self.noise_text(section, part + 1, tokens)
                    header = text.split("\n", 1)[0]
                chunks.append(
                    Chunk(idx=len(chunks), section=section, header=header, kind=kind, text=text, tokens=tokens, entity_names=names)
                )
        return chunks


def min_steps(chunk_costs: list[int], ceiling: int, assumed_summary: int) -> int:
    """Fewest steps: a READ per hop, one ANSWER, and one COMPRESS of everything held whenever the next chunk does not fit."""
    steps, held = 0, 0
    for cost in chunk_costs:
        if held and held + cost > ceiling:
            held, steps = assumed_summary, steps + 1
        held, steps = held + cost, steps + 1
    return steps + 1


def needs_compression(chunk_costs: list[int], ceiling: int) -> bool:
    """Whether some consecutive pair of evidence chunks does not fit together."""
    return any(a + b > ceiling for a, b in zip(chunk_costs, chunk_costs[1:], strict=False))


def token_offset(chunks: Sequence[Chunk], idx: int, name: str, count: Callable[[str], int] = count_tokens) -> int:
    """Tokens of the document before the entry `name` of chunk `idx`; -1 when it is not there."""
    at = f"\n{chunks[idx].text}".find(f"\n{name} — ")
    return -1 if at < 0 else sum(chunk.tokens for chunk in chunks[:idx]) + count(chunks[idx].text[:at])


def _follow(by_name: dict[str, _Record], name: str, hops: int, attribute: int) -> str | None:
    """The current attribute at the end of `hops` current links from `name`."""
    for _ in range(hops):
        name = by_name[name].link.current
    return by_name[name].values[attribute].current


def _distractors(document: _Document, chain: list[_Record], attribute: int, place: dict[int, int]) -> list[Distractor]:
    """Every wrong path and value near the chain, with the answer it leads to."""
    by_name = {record.name: record for register in document.records for chunk in register for record in chunk}
    found: list[Distractor] = []
    k = len(chain)
    for hop, record in enumerate(chain, start=1):
        where = place[hop]

        def add(kind: str, entity: str, value: str, wrong: str | None, hop: int = hop, where: int = where) -> None:
            found.append(Distractor(kind=kind, hop=hop, chunk_idx=where, entity=entity, value=value, wrong_answer=wrong))

        if hop < k and record.link.old is not None:
            add("superseded_link", record.name, record.link.old, _follow(by_name, record.link.old, k - hop - 1, attribute))
        if hop == k and (old := record.values[attribute].old) is not None:
            add("superseded_value", record.name, old, old)
        neighbours = document.records[(hop - 1) % len(REGISTERS)][record.chunk]
        for twin in neighbours:
            if twin.base == record.name and twin is not record:
                lead = twin.link.current if hop < k else twin.values[attribute].current
                add("near_miss_entity", twin.name, lead, _follow(by_name, twin.name, k - hop, attribute))
        if hop == k:
            for other in neighbours:
                if other is not record and other.base != record.name:
                    value = other.values[attribute].current
                    add("near_miss_value", other.name, value, value)
    return found


def make_instance(settings: Settings, split_name: str, index: int, attempt: int) -> Instance:
    """One attempt at instance `index` of a split; the validator decides whether it is kept."""
    split = get_split(settings, split_name)
    seed = instance_seed(settings, split_name, index, attempt)
    dice = _Dice(seed)
    n_hops, target = split.hops[index % len(split.hops)], split.doc_tokens[index % len(split.doc_tokens)]
    document = _Document(settings, dice, target)
    chain: list[_Record] = []
    for hop in range(n_hops):
        originals = [record for record in dice.pick(document.records[hop]) if record.name == record.base]
        chain.append(dice.pick(originals))
    for hop, (record, following) in enumerate(zip(chain, chain[1:], strict=False)):
        _point(record, following.name, document.records[hop][record.chunk])
    chunks = document.lay_out()
    place = {hop: document.first_chunk[hop - 1] + record.chunk for hop, record in enumerate(chain, start=1)}
    attribute = dice.below(2)
    answer_field = chain[-1].register.attributes[attribute].name
    evidence = [
        Evidence(
            hop=hop,
            chunk_idx=place[hop],
            entity_type=record.register.type,
            entity=record.name,
            field=record.register.link if hop < n_hops else answer_field,
            value=record.link.current if hop < n_hops else record.values[attribute].current,
            token_offset=token_offset(chunks, place[hop], record.name),
        )
        for hop, record in enumerate(chain, start=1)
    ]
    rules = settings.rules
    costs = [chunks[place[hop]].tokens for hop in range(1, n_hops + 1)]
    everyone = [record for chunk in document.records[n_hops - 1] for record in chunk]
    return Instance(
        id=f"{settings.profile}-{split_name}-{index:06d}",
        seed=seed,
        split=split_name,
        n_hops=n_hops,
        doc_tokens_target=target,
        doc_tokens=sum(chunk.tokens for chunk in chunks),
        question=grammar.question(chain[0].name, tuple(record.register.link for record in chain[:-1]), answer_field),
        answer=chain[-1].values[attribute].current,
        answer_type=answer_field,
        answer_entity_type=chain[-1].register.type,
        chunks=chunks,
        evidence=evidence,
        distractors=_distractors(document, chain, attribute, place),
        candidate_answers=[record.values[attribute].current for record in everyone],
        min_reads=n_hops,
        min_steps=min_steps(costs, rules.ceiling, rules.assumed_summary),
        compression_required=needs_compression(costs, rules.ceiling),
        generator={"profile": settings.profile, "version": VERSION, "index": index, "attempt": attempt},
        env=asdict(rules),
    )


def _point(record: _Record, name: str, neighbours: list[_Record]) -> None:
    """Let a chain entity's current link lead to `name`; whatever pointed there already, beside it, takes its former link."""
    former = record.link.current
    for twin in neighbours:
        if twin.base == record.name and twin is not record and twin.link.current == name:
            twin.link = Value(former, twin.link.old if twin.link.old != former else name)
            twin.text = twin.fixed_text()
    record.link = Value(name, former if record.link.old == name else record.link.old)
    record.text = record.fixed_text()
