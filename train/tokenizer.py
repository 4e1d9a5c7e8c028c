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
_PIECES = r" ?(?:[^\W\d_]+|20(?:1\d|2[0-4])(?![\d,-])|(?<![\d,-])\d{1,2}(?!\d|[,-]\d)|\d|[^\w\s])|\s"
_PROMPT_WORDS = """
ACTION Action Answer Budget Ceiling Chunk Compressed Context Document Dropped END Error Follow Held If Last Ledger Map Memory Next
None Nothing OK Only Question Read Reply Result Rules State Step Steps THOUGHT Tokens Use Used Write You a above action after all
already always an and answer answered any are at be before begin below budget by call can ceiling chain chunk chunks compressed
context cost costs current cut do document does drop dropped each empty end ends entries entry error exactly exceed exceeded
exceeds exist exists expected far field fields find finished first follow format free given got has have held hold holds how id
ids if in invalid is it item items its keep known last ledger left limit line links list load loads long look map may memory
missing more most must name names need needs never next no noise none not nothing now of ok on once one only or otherwise over per
question reached read refused register registers replace replaces reply response result right rules single so start state stay
step steps such summary takes text than that the then there this thought to tokens too truncated under unknown up use used value
verb was what when while who with would write wrong you your
"""
"""Words of prompts, and spare ones: a prompt can be reworded without a new base model."""
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
