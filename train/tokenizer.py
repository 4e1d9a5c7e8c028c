"""The laptop model's tokenizer: one token per known word, digits of values one by one.

A word carries the space before it, and a line break is followed by an implied space, so that a name is the
same tokens wherever it stands; decoding gives the text back exactly. Standing numbers up to 99 (chunk ids,
steps) and years are single tokens. Unknown words are one unknown token: this tokenizer is for the registers'
vocabulary, not for prose.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from env.navigator import teacher
from env.navigator.settings import Settings
from env.navigator.vocabulary import FILLER, NOISE_SECTIONS, REGISTERS, YEARS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN, SYSTEM, USER, ASSISTANT, END = "<pad>", "<unk>", "<system>", "<user>", "<assistant>", "<end>"
_PUNCTUATION = ".,:;?!()[]–—·-=≤|/'\"<>"
_PIECES = r" ?(?:[^\W\d_]+|20[12]\d(?![\d,-])|(?<![\d,-])\d{1,2}(?!\d|[,-]\d)|\d|[^\w\s])|\s"
_PROMPT_WORDS = """
Question Map Ledger Memory Context Held State Rules Document map memory ledger context held question state rules document Reply reply
read Read dropped Dropped compressed Compressed last Last action Action result Result step Step steps Steps used Used budget Budget tokens Tokens
ceiling Ceiling of none nothing None Nothing ok OK refused invalid error Error not exist exists already no chunk Chunk chunks item items id ids summary
text value empty unknown verb line your with one each the a an and or is are was to in on at most more than it its by that this be must may can
end ends answer Answer find look up entry entries name field fields per free cut exceed exceeds exceeded would over above below left so far
list Follow follow chain links current Only only use Use THOUGHT ACTION then thought first next Next now you You do does before after finished
truncated too long only takes exactly once known such there names need needs given missing wrong right limit reached register registers noise
load loads replace replaces keep drop read answered costs cost single call stay under holds hold have has never always if If otherwise Write write
END start begin response format expected got when while what who how all any
"""
_TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def words(settings: Settings) -> list[str]:
    """Every word of a profile's documents, prompts and teacher's responses, sorted."""
    step = max(1, len(REGISTERS[0].first) // settings.names)
    text: list[str] = [*NOISE_SECTIONS, "part", *FILLER, _PROMPT_WORDS, *teacher.template_texts()]
    text += ["formerly from to then Notes What is the of project"]
    for register in REGISTERS:
        text += [*register.first[::step], *register.second[::step], *register.suffixes, *register.states]
        for name in (register.type, register.section, register.link, register.status, *(a.name for a in register.attributes)):
            text += [name, name.lower()]
        text += [attribute.prefix.removesuffix("-") for attribute in register.attributes]
    return sorted(set(re.findall(r"[^\W\d_]+", " ".join(text))))


def vocabulary(settings: Settings) -> dict[str, int]:
    """Token -> id, special tokens first."""
    tokens = [PAD, UNKNOWN, SYSTEM, USER, ASSISTANT, END, "\n", " "]
    for mark in _PUNCTUATION:
        tokens += [mark, " " + mark]
    numbers = [str(n) for n in range(100)] + [str(year) for year in range(YEARS[0], YEARS[1] + 1)]
    tokens += [" " + number for number in numbers] + [str(n) for n in range(20)]
    listed = words(settings)
    tokens += [" " + word for word in listed] + ["formerly"]
    return {token: i for i, token in enumerate(tokens)}


def build_tokenizer(settings: Settings) -> "PreTrainedTokenizerFast":
    """The tokenizer of a profile, chat template included."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel(vocabulary(settings), unk_token=UNKNOWN))
    core.normalizer = normalizers.Sequence([normalizers.Replace("\n", "\n "), normalizers.Prepend(" ")])
    core.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")
    core.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace("\n ", "\n"), decoders.Strip(" ", 1, 0)])
    core.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in (PAD, UNKNOWN, SYSTEM, USER, ASSISTANT, END)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token=UNKNOWN, pad_token=PAD, eos_token=END)
    tokenizer.chat_template = _TEMPLATE
    tokenizer.clean_up_tokenization_spaces = False
    return tokenizer


def save_tokenizer(settings: Settings, folder: Path) -> None:
    """Write the tokenizer of a profile in the usual format."""
    build_tokenizer(settings).save_pretrained(folder)
