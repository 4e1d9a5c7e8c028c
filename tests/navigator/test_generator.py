import gzip
import hashlib

import pytest

from env.errors import SettingError
from env.navigator.generate import generate_file, instances, report_path
from env.navigator.generator import make_instance, min_steps, needs_compression
from env.navigator.grammar import Value, question, read_entry, read_question, read_value, write_value
from env.navigator.instance import dump_row, read_instances, to_row
from env.navigator.settings import get_profile, get_split
from env.navigator.tokens import count_tokens


def digest(profile, split, n):
    lines = "".join(dump_row(to_row(instance)) for instance in instances(get_profile(profile), split, 0, n))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def test_the_same_split_and_index_give_the_same_bytes_for_ever():
    assert digest("laptop", "id_test", 3) == "4ecd9506d9c7f33d"
    assert digest("v1", "ood_test", 2) == "ccaf7b349151ef80"


def test_every_chunk_has_exactly_its_recorded_length_from_the_one_distribution(laptop, public):
    for instance in [*laptop, *public]:
        low, high = get_profile(instance.generator["profile"]).chunk_tokens
        for chunk in instance.chunks:
            assert count_tokens(chunk.text) == chunk.tokens
            assert low <= chunk.tokens <= high


def test_every_register_chunk_has_the_same_number_of_twins(public):
    for chunk in public[0].chunks:
        names = chunk.entity_names
        twins = [b for a, b in zip(names, names[1:], strict=False) if b.startswith(a + " ")]
        assert len(twins) == (1 if chunk.kind == "register" else 0)
        assert names == sorted(names)


def test_entity_names_are_those_of_the_text(laptop):
    for chunk in laptop[0].chunks:
        entries = [entry for line in chunk.text.split("\n") if (entry := read_entry(line))]
        assert [entry.name for entry in entries] == chunk.entity_names


def test_a_twin_leads_elsewhere(laptop, deep):
    for instance in [*laptop, *deep]:
        for evidence in instance.evidence[:-1]:
            entries = {e.name: e for line in instance.chunks[evidence.chunk_idx].text.split("\n") if (e := read_entry(line))}
            for name, entry in entries.items():
                if name.startswith(evidence.entity + " "):
                    assert entry.fields[evidence.field].current != evidence.value


@pytest.mark.parametrize("years", [None, (2011, 2019)])
def test_both_forms_of_a_superseded_value_read_back(years):
    value = Value("Ada Lind", "Bo Roe")
    assert read_value(write_value(value, years)) == value
    assert read_value(write_value(Value("4,885"), years)) == Value("4,885")


def test_a_question_reads_back():
    text = question("Amber Falcon", ("Lead", "Unit"), "Headcount")
    assert text == "What is the headcount of the unit of the lead of project Amber Falcon?"
    assert read_question(text) == ("Amber Falcon", ("Lead", "Unit"), "Headcount")
    assert read_question("What is the colour of project Amber Falcon?") is None


@pytest.mark.parametrize(
    ("costs", "steps", "compress"),
    [([400], 2, False), ([400, 400], 4, True), ([200, 200], 3, False), ([400, 400, 400], 6, True), ([200, 200, 400], 5, False)],
)
def test_min_steps_counts_a_compress_whenever_the_next_chunk_does_not_fit(costs, steps, compress):
    assert min_steps(costs, ceiling=600, assumed_summary=32) == steps
    assert needs_compression(costs, ceiling=600) is compress


def test_splits_of_a_profile_never_share_a_seed():
    settings = get_profile("laptop")
    seeds = [make_instance(settings, split, index, 0).seed for split in settings.splits for index in range(5)]
    assert len(set(seeds)) == len(seeds)


def test_unknown_profile_and_split_are_the_users_mistake():
    with pytest.raises(SettingError, match="use one of v1, laptop"):
        get_profile("v2")
    with pytest.raises(SettingError, match="use one of train, dev, id_test, ood_test$"):
        get_split(get_profile("laptop"), "scale_test")


def test_a_file_holds_the_wanted_range_and_its_report_counts_every_attempt(tmp_path):
    settings = get_profile("laptop")
    whole = generate_file(settings, "ood_test", 0, 6, tmp_path / "a.jsonl")
    part = generate_file(settings, "ood_test", 4, 2, tmp_path / "b.jsonl.gz")
    assert [i.id for i in read_instances(tmp_path / "b.jsonl.gz")] == ["laptop-ood_test-000004", "laptop-ood_test-000005"]
    assert [to_row(i) for i in read_instances(tmp_path / "a.jsonl")][4:] == [to_row(i) for i in read_instances(tmp_path / "b.jsonl.gz")]
    assert whole["attempts"] == 6 + sum(whole["rejections"].values())
    assert part["audit"]["passed"] is True
    assert report_path(tmp_path / "b.jsonl.gz").name == "b.report.json"
    assert report_path(tmp_path / "b.jsonl.gz").exists()


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_any_number_of_workers_writes_the_same_bytes(tmp_path, suffix):
    settings = get_profile("laptop")
    one = generate_file(settings, "train", 3, 45, tmp_path / f"one{suffix}", workers=1)
    two = generate_file(settings, "train", 3, 45, tmp_path / f"two{suffix}", workers=2)
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()
    assert one == two
    assert [i.generator["index"] for i in read_instances(tmp_path / f"two{suffix}")] == list(range(3, 48))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
@pytest.mark.parametrize("torn", [0, 7])
def test_a_stopped_generation_goes_on_after_its_last_whole_block(tmp_path, suffix, torn):
    settings, out = get_profile("laptop"), tmp_path / f"f{suffix}"

    def stop_after_two_blocks(done, total=[0]):  # noqa: B006 (counts over calls)
        total[0] += done
        if total[0] == 40:
            raise Killed

    with pytest.raises(Killed):
        generate_file(settings, "train", 0, 70, out, stop_after_two_blocks)
    assert not out.exists()
    with (tmp_path / f"f{suffix}.part").open("ab") as data, (tmp_path / f"f{suffix}.part.journal").open("a") as journal:
        data.write(b"x" * torn)
        journal.write('{"end": 12'[:torn])
    counted = []
    resumed = generate_file(settings, "train", 0, 70, out, counted.append)
    assert counted == [40, 20, 10]
    assert resumed == generate_file(settings, "train", 0, 70, tmp_path / f"whole{suffix}")
    assert out.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    assert sorted(p.name for p in tmp_path.glob("*part*")) == []


def test_what_another_request_has_left_is_not_gone_on_from(tmp_path):
    settings, out = get_profile("laptop"), tmp_path / "f.jsonl"

    def stop(done):
        raise Killed

    with pytest.raises(Killed):
        generate_file(settings, "train", 0, 40, out, stop)
    generate_file(settings, "train", 100, 3, out)
    assert [i.generator["index"] for i in read_instances(out)] == [100, 101, 102]


def test_the_data_card_tells_counts_sizes_rejections_and_the_hash_of_the_lines(tmp_path):
    report = generate_file(get_profile("laptop"), "ood_test", 0, 6, tmp_path / "a.jsonl.gz")
    lines = gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())
    assert report["sha256"] == hashlib.sha256(lines).hexdigest()
    assert report["sizes"]["hops"] == {"4": 3, "5": 3}
    assert report["sizes"]["entries"] == {"min": 3, "mean": 3.0, "max": 3}
    text = (tmp_path / "a.card.md").read_text()
    assert "6 instances of the navigator task, profile laptop, split ood_test, from index 0: 3 of 4 hops, 3 of 5 hops." in text
    assert report["sha256"] in text
    assert f"Rejected: {report['rejected']} of {report['attempts']} attempts" in text
