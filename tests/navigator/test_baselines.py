from dataclasses import replace

import pytest

from env.navigator.baselines import MECHANICAL, Given, OneStep, Style
from env.navigator.generate import instances
from env.navigator.instance import from_row, to_row
from env.navigator.settings import get_profile
from env.protocol import Ending

PEOPLE = """People · Ada Lind – Cy Fox
Ada Lind — Unit: Mills. Badge: 10001 (formerly 10009). Notes: x.
Ada Lind Junior — Unit: Looms. Badge: 10002. Notes: x.
Bo Roe — Unit: Mills. Badge: 10003. Notes: x.
Cy Fox — Unit: Looms. Badge: 10009 from 2001 to 2003, then 10004. Notes: x."""


@pytest.fixture
def tiny():
    """Two hops; four of the five candidates stand in the answer chunk, the anchor in the question's best overlap."""
    texts = {
        "Projects": "Projects · Alder – Birch\nAlder — Lead: Ada Lind. Budget: 5. Notes: x.\nBirch — Lead: Bo Roe. Budget: 6. Notes: x.",
        "People": PEOPLE,
        "Log": "Log · part 1\nDi Ash: the badge of the lead.",
    }
    names = {"Projects": ["Alder", "Birch"], "People": ["Ada Lind", "Ada Lind Junior", "Bo Roe", "Cy Fox"], "Log": []}
    chunks = [
        {
            "idx": i,
            "section": s,
            "header": s,
            "kind": "register" if names[s] else "noise",
            "text": text,
            "tokens": 50,
            "entity_names": names[s],
        }
        for i, (s, text) in enumerate(texts.items())
    ]
    chain = [("project", "Alder", "Lead", "Ada Lind"), ("person", "Ada Lind", "Badge", "10001")]
    evidence = [
        {"hop": i + 1, "chunk_idx": i, "entity_type": t, "entity": e, "field": f, "value": v, "token_offset": 0}
        for i, (t, e, f, v) in enumerate(chain)
    ]
    return from_row(
        {
            "id": "tiny",
            "seed": 0,
            "split": "cases",
            "n_hops": 2,
            "doc_tokens_target": 150,
            "doc_tokens": 150,
            "question": "What is the badge of the lead of project Alder?",
            "answer": "10001",
            "answer_type": "Badge",
            "answer_entity_type": "person",
            "chunks": chunks,
            "evidence": evidence,
            "distractors": [],
            "candidate_answers": ["10001", "10002", "10003", "10004", "10005"],
            "min_reads": 2,
            "min_steps": 3,
            "compression_required": False,
        }
    )


def scores(instance):
    return {name: reader(instance) for name, reader in MECHANICAL.items()}


def with_chunk(instance, idx, text):
    row = to_row(instance)
    row["chunks"][idx]["text"] = text
    return from_row(row)


def test_each_mechanical_baseline_has_its_exact_probability(tiny):
    assert scores(tiny) == {"no-read": 0.0, "chance": 0.2, "single-chunk": 0.25, "top-overlap": 0.0, "full-document": 1.0}


@pytest.mark.parametrize(
    ("question", "score"),
    [("Is it 10001?", 1.0), ("Is it 10001, or 10002?", 0.5), ("Is it 10002?", 0.0), ("Is it 110001?", 0.0), ("Is it?", 0.0)],
)
def test_no_read_guesses_among_the_values_of_the_question(tiny, question, score):
    assert MECHANICAL["no-read"](replace(tiny, question=question)) == score


def test_no_read_sees_the_names_of_the_map(tiny):
    row = to_row(tiny)
    row["chunks"][1]["entity_names"][0] = "Ada Lind 10001"
    assert MECHANICAL["no-read"](from_row(row)) == 1.0


@pytest.mark.parametrize(
    ("question", "score"), [("The badge of Ada Lind?", 1.0), ("The badge of Ada Lind Junior?", 0.0), ("The badge of Ada Lindt?", 0.25)]
)
def test_a_chunk_is_read_at_the_entry_that_the_question_names(tiny, question, score):
    assert MECHANICAL["single-chunk"](replace(tiny, question=question)) == score


def test_the_chunk_of_best_overlap_is_read_wherever_it_is(tiny):
    assert MECHANICAL["top-overlap"](replace(tiny, question="Which badge has the unit Looms?")) == 0.25


def test_the_full_document_needs_an_unbroken_chain(tiny):
    broken = tiny.chunks[0].text.replace("Lead: Ada Lind", "Lead: Nobody")
    assert MECHANICAL["full-document"](with_chunk(tiny, 0, broken)) == 0.0
    follows_old = PEOPLE.replace("10001 (formerly 10009)", "10009 (formerly 10001)")
    assert MECHANICAL["full-document"](with_chunk(tiny, 1, follows_old)) == 0.0


def test_readers_that_cannot_be_had_say_nothing(tiny, small):
    assert MECHANICAL["full-document"](replace(tiny, question="Quel badge ?")) is None
    assert MECHANICAL["single-chunk"](small) is None


def test_v1_gives_the_published_figures():
    played = [i for split in ("id_test", "ood_test") for i in instances(get_profile("v1"), split, 0, 20)]
    means = {name: sum(map(reader, played)) / len(played) for name, reader in MECHANICAL.items()}
    assert (means["no-read"], means["top-overlap"], means["full-document"]) == (0.0, 0.0, 1.0)
    assert means["chance"] == pytest.approx(0.017, abs=0.01)
    # Its standard error at this size is 0.006.
    assert means["single-chunk"] == pytest.approx(0.183, abs=0.02)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (Given.NOTHING, (True, False, False)),
        (Given.CHUNK, (False, False, True)),
        (Given.DOCUMENT, (False, True, True)),
    ],
)
@pytest.mark.parametrize("style", Style)
def test_the_prompt_shows_what_is_given_and_nothing_else(tiny, given, style, shown):
    observation = OneStep(tiny, given, style).observe()
    prompt = observation.static + observation.dynamic
    assert tiny.question in prompt
    assert ("1 · People · Ada Lind – Cy Fox · 50\n" in prompt, "Di Ash" in prompt, "10001" in prompt) == shown
    assert ("ACTION: ANSWER" in prompt) == (style is Style.REASONING)


def test_the_styles_share_all_but_the_last_line(tiny):
    one, other = (OneStep(tiny, Given.DOCUMENT, style).observe() for style in Style)
    assert (one.system, one.static) == (other.system, other.static)


@pytest.mark.parametrize(
    ("style", "response", "truncated", "answer"),
    [
        (Style.ANSWER_ONLY, "10001", False, "10001"),
        (Style.ANSWER_ONLY, "\n 10001 \nbecause", True, "10001"),
        (Style.ANSWER_ONLY, "ACTION: ANSWER 10001\nbecause", False, "10001"),
        (Style.ANSWER_ONLY, " \n", False, None),
        (Style.REASONING, "THOUGHT: 10002 is of the twin.\naction: answer 10001", False, "10001"),
        (Style.REASONING, "ACTION: ANSWER 10001", True, None),
        (Style.REASONING, "10001", False, None),
        (Style.REASONING, "ACTION: READ 1", False, None),
    ],
)
def test_what_counts_as_an_answer(tiny, style, response, truncated, answer):
    episode = OneStep(tiny, Given.CHUNK, style)
    assert episode.reward is None
    result = episode.step(response, truncated=truncated)
    assert (episode.answer, episode.correct) == (answer, answer is not None)
    assert (result.done, result.ok, result.used) == (True, answer is not None, 50)
    assert (episode.ending, episode.reward) == ((Ending.ANSWERED, 0.95) if answer else (Ending.BUDGET_EXHAUSTED, -0.5))
    with pytest.raises(AssertionError):
        episode.step(response)
