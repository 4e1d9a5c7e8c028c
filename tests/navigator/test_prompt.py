import re
from dataclasses import replace

from env.navigator.episode import NavigatorEpisode
from env.navigator.map import render_map
from env.navigator.policies import Oracle
from env.navigator.settings import Rules


def observations(instance):
    episode, oracle = NavigatorEpisode(instance), Oracle(0)
    while episode.ending is None:
        yield episode.observe()
        episode.step(oracle(episode))


def test_everything_before_the_ledger_is_the_same_in_every_step(laptop):
    seen = list(observations(laptop[0]))
    assert len({(o.system, o.static) for o in seen}) == 1
    assert len({o.dynamic for o in seen}) == len(seen)
    assert seen[0].messages == [
        {"role": "system", "content": seen[0].system},
        {"role": "user", "content": seen[0].static + seen[0].dynamic},
    ]


def test_steps_and_tokens_stand_behind_the_map(public):
    for o in observations(public[0]):
        assert render_map(public[0]) in o.static
        assert "Steps used" not in o.static
        assert "Tokens held" not in o.static


def test_the_ledger_tells_the_past(small):
    episode = NavigatorEpisode(small)
    for response in ("ACTION: READ 0", "ACTION: COMPRESS 0 :: Alder leads to Ada", "ACTION: READ 3", "ACTION: DROP 3", "ACTION: DROP 9"):
        episode.step(response)
    assert episode.observe().dynamic == (
        "Memory ledger\n"
        "Read so far: 0 3\n"
        "Dropped: 3\n"
        "Compressed: 0\n"
        "Last action: DROP 9 refused: not held\n"
        "Steps used: 5 of 14\n"
        "Tokens held: 4 of 600\n"
        "\n"
        "Working context\n"
        "[ summary S1 ]\nAlder leads to Ada\n"
        "\nWhat is your next action?"
    )


def test_noise_collapses_to_one_line_and_registers_show_their_range(laptop):
    instance = laptop[0]
    lines = render_map(instance).split("\n")
    registers = [c for c in instance.chunks if c.kind == "register"]
    noise = {c.section for c in instance.chunks if c.kind == "noise"}
    assert len(lines) == len(registers) + len(noise)
    first = registers[0]
    assert f"{first.idx} · {first.section} · {first.entity_names[0]} – {first.entity_names[-1]} · {first.tokens}" in lines


def test_a_register_chunk_of_a_foreign_file_without_names_shows_its_header(small):
    chunks = [replace(small.chunks[0], entity_names=[], header="Projects · A – C"), *small.chunks[1:]]
    lines = render_map(replace(small, chunks=chunks)).split("\n")
    assert lines[:2] == ["0 · Projects · A – C · 342", "1 · S · Birch – Birch · 368"]


def test_no_word_is_glued_to_an_opening_bracket_of_the_state(small):
    episode = NavigatorEpisode(small)
    for response in ("ACTION: READ 0", "ACTION: COMPRESS 0 :: Alder", "ACTION: READ 3"):
        episode.step(response)
    seen = episode.observe()
    assert not re.search(r"[(\[]\w", seen.static + seen.dynamic)


def test_a_brief_prompt_says_the_same_in_few_words(small):
    episode = NavigatorEpisode(small, Rules(brief=True))
    for response in ("ACTION: READ 0", "ACTION: COMPRESS 0 :: Alder leads to Ada", "ACTION: READ 3", "ACTION: DROP 3", "x"):
        episode.step(response)
    assert episode.observe().dynamic == (
        "read 0 3 · dropped 3 · compressed 0 · last invalid: unknown verb · step 5 of 14 · held 4 of 600\nS1: Alder leads to Ada\nnext"
    )
