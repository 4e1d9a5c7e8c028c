from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env.errors import InputError, SettingError
from env.navigator.counters import ModelCounter, counter_for
from env.navigator.episode import NavigatorEpisode
from env.navigator.exploits import EXPLOITS, check_accounting, run_exploits
from env.navigator.instance import from_row, read_instances, to_row, write_rows
from env.navigator.policies import Oracle
from env.navigator.recount import measure, recount_file, recounted, scaled_rules
from env.navigator.settings import Rules, rules_from
from env.navigator.tokens import ByteFloor, WordCounter
from env.navigator.validator import problems

BASE = str(Path(__file__).parents[2] / "train" / "base")
TEXT = st.text() | st.lists(
    st.sampled_from(["Amber Falcon", " — ", "Lead: ", "4,885,866", "PJ-471", "\n", "日本", "e\u0301", "_", "\u2003", "\ud800", "<end>"])
).map("".join)


@pytest.fixture(scope="session")
def byte_level(tmp_path_factory):
    """A byte-level BPE tokenizer with hardly any merges: one character may be several tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=280, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    core.train_from_iterator(["Amber Falcon — Lead: Ada Lind. 日本"] * 4, trainer)
    folder = tmp_path_factory.mktemp("byte_level")
    core.save(str(folder / "tokenizer.json"))
    return str(folder)


def exact(counter, text, limit):
    cut = counter.cut(text, limit)
    assert counter.count(cut) <= max(0, limit)
    assert text.startswith(cut)
    if counter.count(text) <= limit:
        assert cut == text


@given(text=TEXT, limit=st.integers(-1, 12), size=st.integers(1, 8))
def test_the_floor_cuts_to_at_most_the_limit_by_its_own_count(text, limit, size):
    exact(ByteFloor(WordCounter(), size), text, limit)


@given(text=TEXT, limit=st.integers(-1, 12))
@settings(max_examples=60)
@pytest.mark.parametrize("model", ["base", "bytes"])
def test_a_cut_text_never_counts_more_than_the_limit_when_it_is_encoded_again(model, text, limit, byte_level):
    exact(counter_for(Rules(tokens=BASE if model == "base" else byte_level, bytes_per_token=8)), text, limit)


@pytest.mark.parametrize(("text", "limit", "cut"), [(" ", 0, " "), ("a", 0, ""), (" a", 0, ""), (" ", -1, " "), ("a b ", 2, "a b ")])
def test_a_cut_at_no_tokens_keeps_only_text_that_counts_none(text, limit, cut):
    assert WordCounter().cut(text, limit) == cut


def test_ordinary_text_never_feels_the_floor():
    counter = ByteFloor(WordCounter(), 8)
    assert counter.count("Lighthouse Stevedores: Account manager = Gustav Thorne") == 8
    assert counter.count("a_b") == 1
    assert counter.count("_".join(["Amber"] * 40)) == 239 // 8
    assert counter.cut("日" * 30, 2) == "日" * 7


def test_a_model_counts_as_its_own_tokenizer_does():
    from transformers import AutoTokenizer

    text = "Amber Falcon — Lead: Ada Lind. Budget: 4,885. naïve\nNotes: agreed."
    ids = AutoTokenizer.from_pretrained(BASE)(text, add_special_tokens=False)["input_ids"]
    assert ModelCounter(BASE).count(text) == len(ids)


def test_a_character_of_several_tokens_is_kept_whole_or_not_at_all(byte_level):
    counter = ModelCounter(byte_level)
    assert counter.count("語語") == 6
    assert [counter.cut("語語", limit) for limit in (2, 3, 5, 6)] == ["", "語", "語", "語語"]


@pytest.mark.parametrize("model", ["no/such/model", str(Path(__file__).parent)])
def test_a_tokenizer_that_is_not_there_is_a_setting_error(model, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SettingError, match=f"tokens is '{model}', expected a model folder with a tokenizer.json"):
        ModelCounter(model)


@pytest.fixture(scope="session")
def in_base_tokens(laptop, deep, tmp_path_factory):
    """(report, instances) of the laptop instances in tokens of the shipped base model."""
    folder = tmp_path_factory.mktemp("recount")
    write_rows(folder / "words.jsonl", map(to_row, [*laptop, *deep]))
    report = recount_file(folder / "words.jsonl", folder / "base.jsonl", tokens=BASE)
    return report, list(read_instances(folder / "base.jsonl"))


def test_a_recounted_file_says_what_it_is_played_with(laptop, deep, in_base_tokens):
    report, instances = in_base_tokens
    assert len(instances) == report["instances"] == len(laptop) + len(deep)
    counter = ModelCounter(BASE)
    for old, new in zip([*laptop, *deep], instances, strict=True):
        assert [chunk.text for chunk in new.chunks] == [chunk.text for chunk in old.chunks]
        assert [chunk.tokens for chunk in new.chunks] == [counter.count(chunk.text) for chunk in new.chunks]
        assert new.doc_tokens == sum(chunk.tokens for chunk in new.chunks)
        assert new.env == old.env | {"tokens": BASE} | {key: new.env[key] for key in ("ceiling", "summary_cap", "assumed_summary")}
        assert new.env["ceiling"] == report["ceiling"] == report["largest"] + report["summary_cap"]
        assert [counter.count(new.chunks[e.chunk_idx].text) > 0 for e in new.evidence]
    assert report["summary_cap"] == round(24 * report["ratio"])
    assert report["without_compression"] == sum(not i.compression_required for i in instances)


def test_offsets_are_the_tokens_before_an_entry(small, tmp_path):
    row = to_row(small) | {
        "evidence": [
            {"hop": 1, "chunk_idx": 2, "entity_type": "project", "entity": "Cedar", "field": "Lead", "value": "Cy Fox", "token_offset": 0}
        ]
    }
    row["chunks"][2]["text"] = "S\nCedar — Lead: Cy Fox."
    write_rows(tmp_path / "i.jsonl", [row])
    counter = ModelCounter(BASE)
    rules = scaled_rules(Rules(), BASE, measure(tmp_path / "i.jsonl", counter), ceiling=None, summary_cap=None)
    new = recounted(from_row(row), rules)
    assert new.evidence[0].token_offset == sum(chunk.tokens for chunk in new.chunks[:2]) + counter.count("S\n")


def test_the_oracle_needs_exactly_min_steps_in_model_tokens_too(in_base_tokens):
    for instance in in_base_tokens[1]:
        episode, oracle = NavigatorEpisode(instance), Oracle(0)
        while episode.ending is None:
            episode.step(oracle(episode))
            check_accounting(episode)
        assert (episode.correct, episode.steps_used) == (True, instance.min_steps)


def test_no_exploit_earns_anything_in_model_tokens(in_base_tokens):
    few = in_base_tokens[1][-4:]
    assert {name: result.earned for name, result in run_exploits(few).items() if result.earned} == {}
    assert len(run_exploits(few[:1])) == len(EXPLOITS)


SUMMARIES = st.sampled_from(["Amber Falcon: Lead = Ada Lind", "a_b" * 90, "日本" * 60, "w " * 80, "4,885,866 " * 9, "e\u0301" * 40])
ACTIONS = st.lists(
    st.builds("ACTION: COMPRESS {} :: {}".format, st.sampled_from(["0", "1", "S1", "S1 2", "S2 S1"]), SUMMARIES)
    | st.sampled_from(["ACTION: READ 0", "ACTION: READ 1", "ACTION: READ 2", "ACTION: DROP 0", "ACTION: DROP S1", "?"]),
    max_size=14,
)


@given(responses=ACTIONS)
@settings(max_examples=60)
def test_used_is_what_is_held_in_model_tokens(responses, in_base_tokens):
    episode = NavigatorEpisode(in_base_tokens[1][0])
    for response in responses:
        if episode.ending is None:
            episode.step(response)
            check_accounting(episode)


def test_a_ceiling_under_the_largest_chunk_is_refused(laptop, tmp_path):
    write_rows(tmp_path / "i.jsonl", map(to_row, laptop[:2]))
    with pytest.raises(SettingError, match=r"--ceiling is 100: the largest chunk \(\d+\) and a summary \(20\) need \d+; raise it"):
        recount_file(tmp_path / "i.jsonl", tmp_path / "o.jsonl", tokens=BASE, ceiling=100, summary_cap=20)
    report = recount_file(tmp_path / "i.jsonl", tmp_path / "o.jsonl", tokens=BASE, ceiling=300, summary_cap=20)
    assert (report["ceiling"], report["summary_cap"]) == (300, 20)
    with pytest.raises(InputError, match="is counted by .* already; give the file it was made from"):
        recount_file(tmp_path / "o.jsonl", tmp_path / "p.jsonl", tokens=BASE)


def test_a_public_file_without_the_rule_is_played_without_a_floor(small):
    assert rules_from({}).bytes_per_token == 0
    episode = NavigatorEpisode(small)
    episode.step("ACTION: READ 0")
    assert episode.step("ACTION: COMPRESS 0 :: " + "a_b" * 500).used == 1
    floored = NavigatorEpisode(small, replace(Rules(), bytes_per_token=8))
    floored.step("ACTION: READ 0")
    assert floored.step("ACTION: COMPRESS 0 :: " + "a_b" * 500).used == 120


def test_a_recounted_instance_is_valid_by_the_tokens_it_is_charged_in(in_base_tokens):
    _, instances = in_base_tokens
    assert [problems(instance) for instance in instances] == [None] * len(instances)
