"""What the laptop model is pretrained on: register text and exercises that force copying and look-up.

An example is a context (a question, a map, a chunk or two, or nothing) and lines to complete from it:

    Amber Falcon: Lead = | Ada Lind                          the current value, beside old ones and twins
    need Lead of Amber Falcon. | Amber Falcon: Lead = Ada Lind.     a need said again with what is found
    Amber Falcon: Budget = 4,885. two words | 4,885         a value said again, behind any two words
    Lead Ada Lind of | Amber Falcon                          the entry that a value belongs to
    Amber Falcon — Lead: Ada Lind = | Amber Falcon           the entry that is being read
    Amber Falcon: Lead = Ada Lind. two words, chunk | 13    the number over the chunk that a fact was read in
    Ada Lind in People: | Ada Baker ≤ Ada Lind ≤ Cyril Nash, chunk 9.     a range of the map
    Amber Falcon: Lead = Ada Lind. Next | Unit of Ada Lind in People.     the next link of a question
    copy ... | ...                                           a run of random tokens, again

No prompt, action or trace of an episode occurs, and questions have at most three hops. Documents come from
seeds of their own split, so none is held out anywhere.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from env.navigator.generator import make_instance
from env.navigator.grammar import read_chunk
from env.navigator.instance import Chunk, Instance
from env.navigator.map import render_map
from env.navigator.settings import Settings, Split
from env.navigator.vocabulary import REGISTERS
from train.tokenizer import words

SPLIT = "pretrain"

Line = tuple[str, str]
"""(given text, text to complete)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """Texts before they are tokenised."""

    context: list[str]
    lines: list[Line]


def documents(settings: Settings, seed: int) -> Iterator[Instance]:
    """Endless fresh documents of the pretraining split."""
    own = replace(settings, splits={SPLIT: Split(size=0, hops=(2, 3), doc_tokens=settings.splits["train"].doc_tokens)})
    index = seed * 10_000_000
    while True:
        yield make_instance(own, SPLIT, index, 0)
        index += 1


def value_lines(rng: Random, chunks: list[Chunk], vocabulary: list[str]) -> list[Line]:
    """Current values of random fields of the chunks' entries."""
    lines = []
    for chunk in chunks:
        for entry in read_chunk(chunk.text):
            for field, value in entry.fields.items():
                fact = f"{entry.name}: {field} = {value.current}."
                form = rng.random()
                if form < 0.3:
                    lines.append((f"need {field} of {entry.name}.", fact))
                elif form < 0.55:
                    lines.append((f"{fact} {rng.choice(vocabulary)} {rng.choice(vocabulary)}", f"{value.current}."))
                elif form < 0.8:
                    lines.append((f"{entry.name}: {field} =", f"{value.current}."))
                else:
                    lines.append((f"{entry.name} has {field}", f"{value.current}."))
    return lines


def owner_lines(chunks: list[Chunk]) -> list[Line]:
    """Names of the entries that values belong to, where only one has the value.

    Without these a model finds the right field of any entry, and takes tens of millions of tokens to see that a
    field belongs to a name.
    """
    lines = []
    for chunk in chunks:
        shown = [(entry.name, field, value.current) for entry in read_chunk(chunk.text) for field, value in entry.fields.items()]
        times = Counter(value for _, _, value in shown)
        lines += [(f"{field} {value} of", f"{name}.") for name, field, value in shown if times[value] == 1]
    return lines


def reading_lines(rng: Random, chunks: list[Chunk]) -> list[Line]:
    """Entries broken off after a random field, and whose they are."""
    lines = []
    for chunk in chunks:
        for text in chunk.text.split("\n")[1:]:
            fields = text.partition(". Notes: ")[0].split(". ")
            lines.append((". ".join(fields[: rng.randint(1, len(fields))]) + " =", f"{text.partition(' — ')[0]}."))
    return lines


def number_lines(rng: Random, number: int, chunk: Chunk, vocabulary: list[str]) -> list[Line]:
    """The number over a chunk, behind facts of its entries and any two words."""
    lines = []
    for entry in read_chunk(chunk.text):
        field, value = rng.choice(list(entry.fields.items()))
        fact = f"{entry.name}: {field} = {value.current}."
        lines.append((f"{fact} {rng.choice(vocabulary)} {rng.choice(vocabulary)}, chunk", f"{number}."))
    return lines


def range_lines(rng: Random, chunks: list[Chunk], names_of: dict[str, list[str]]) -> list[Line]:
    """Ranges of the map that names fall into; every second name is made up, so that only its place in the alphabet tells."""
    lines = []
    for chunk in chunks:
        if chunk.kind == "register":
            first, last = chunk.entity_names[0], chunk.entity_names[-1]
            names = chunk.entity_names + [name for name in rng.sample(names_of[chunk.section], 25) if first < name < last][:3]
            for name in names:
                lines.append((f"{name} in {chunk.section}:", f"{first} ≤ {name} ≤ {last}, chunk {chunk.idx}."))
    return lines


def chain_lines(rng: Random, instance: Instance) -> tuple[str, list[Line]]:
    """A question of one to three links from any register, and what each fact leads to."""
    start, depth = rng.randrange(len(REGISTERS)), rng.randint(1, 3)
    chain = [REGISTERS[(start + i) % len(REGISTERS)] for i in range(depth)]
    attribute = rng.choice(chain[-1].attributes).name
    names = [rng.choice([n for c in instance.chunks if c.section == register.section for n in c.entity_names]) for register in chain]
    links = "".join(f" of the {register.link.lower()}" for register in reversed(chain[:-1]))
    question = f"What is the {attribute.lower()}{links} of {chain[0].type} {names[0]}?"
    fields = [register.link for register in chain[:-1]] + [attribute]
    lines = [("need", f"{fields[0]} of {names[0]} in {chain[0].section}.")]
    for i in range(depth - 1):
        given = f"{names[i]}: {fields[i]} = {names[i + 1]}. Next"
        lines.append((given, f"{fields[i + 1]} of {names[i + 1]} in {chain[i + 1].section}."))
    return question, lines


def copy_lines(rng: Random, vocabulary: list[str]) -> list[Line]:
    """Random words to be written again."""
    lines = []
    for _ in range(rng.randint(2, 4)):
        run = " ".join(rng.choice(vocabulary) for _ in range(rng.randint(4, 24)))
        lines.append((f"copy {run} =", run))
    return lines


def make_example(rng: Random, instance: Instance, vocabulary: list[str], names_of: dict[str, list[str]], long: bool) -> Example:
    """One example; `long` puts question, map and chunk into one context as large as a real prompt."""
    kind = rng.random()
    registers = [chunk for chunk in instance.chunks if chunk.kind == "register"]
    if not long and kind < 0.1:
        return Example(context=[], lines=copy_lines(rng, vocabulary))
    if not long and kind < 0.2:
        return Example(context=[], lines=reading_lines(rng, rng.sample(registers, 2)))
    question, chain = chain_lines(rng, instance)
    chunk = rng.sample(registers, 1)
    values, ranges = value_lines(rng, chunk, vocabulary), range_lines(rng, instance.chunks, names_of)
    if long:
        lines = rng.sample(values, min(12, len(values))) + rng.sample(owner_lines(chunk), 4) + rng.sample(ranges, 3) + chain
        lines += number_lines(rng, chunk[0].idx, chunk[0], vocabulary)[:2]
        context = [question, render_map(instance), f"chunk {chunk[0].idx}:", chunk[0].text]
    elif kind < 0.65:
        lines, context = values + owner_lines(chunk), [chunk[0].text]
    elif kind < 0.8:
        two = list(zip(rng.sample(range(100), 2), rng.sample(registers, 2), strict=True))
        lines = [line for number, shown in two for line in number_lines(rng, number, shown, vocabulary)]
        context = [text for number, shown in two for text in (f"chunk {number}:", shown.text)]
    else:
        lines, context = rng.sample(ranges, min(9, len(ranges))) + chain, [question, render_map(instance)]
    rng.shuffle(lines)
    return Example(context=context, lines=lines)


def examples(settings: Settings, seed: int, long_share: float, short_first: int) -> Iterator[Example]:
    """Endless examples, several from each document; the first `short_first` are all short."""
    made = 0
    rng = Random(seed)
    step = max(1, len(REGISTERS[0].first) // settings.names)
    # Copying takes every word there is: one that no example asked for could not be told from the others later.
    vocabulary = [*words(settings), "::", "S1", "S2", "≤", "·", "–", "—"]
    names_of = {r.section: [f"{a} {b}" for a in r.first[::step] for b in r.second[::step]] for r in REGISTERS}
    vocabulary += [str(n) for n in range(100)] + [f"{a.prefix}{n}" for r in REGISTERS for a in r.attributes for n in (417, 2086, 935)]
    for instance in documents(settings, seed):
        for _ in range(6):
            long = made >= short_first and rng.random() < long_share
            made += 1
            yield make_example(rng, instance, vocabulary, names_of, long)
