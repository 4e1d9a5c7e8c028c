from env.navigator.episode import NavigatorEpisode
from env.navigator.map import render_map
from env.navigator.policies import Oracle


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
