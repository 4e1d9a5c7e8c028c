import json

import pytest

from env.errors import InputError
from env.navigator.instance import from_row, read_instances, to_row, write_rows


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_files_go_both_ways_by_suffix(tmp_path, laptop, suffix):
    path = tmp_path / f"f{suffix}"
    assert write_rows(path, map(to_row, laptop[:3])) == 3
    assert list(read_instances(path)) == laptop[:3]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_compressed_bytes_are_the_same_every_time(tmp_path, laptop):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_rows(tmp_path / name, map(to_row, laptop[:1]))
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_unknown_fields_are_kept_at_every_level(laptop):
    row = json.loads(json.dumps(to_row(laptop[0])))
    row["theirs"] = {"x": 1}
    row["chunks"][0]["colour"] = "red"
    row["evidence"][0]["note"] = 7
    assert to_row(from_row(row)) == row


def test_generator_and_env_may_be_absent(laptop):
    row = to_row(laptop[0])
    del row["generator"], row["env"]
    assert from_row(row).env == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.pop("answer"), "field 'answer' is missing"),
        (lambda row: row.update(n_hops="two"), "field 'n_hops' is \"two\", expected int"),
        (lambda row: row.update(n_hops=True), "field 'n_hops' is true, expected int"),
        (lambda row: row.update(candidate_answers=[1]), "field 'candidate_answers' is [1], expected list[str]"),
        (lambda row: row["chunks"][1].pop("text"), "field 'chunks'[1]: field 'text' is missing"),
        (lambda row: row["evidence"][0].update(hop=None), "field 'evidence'[0]: field 'hop' is null, expected int"),
        (lambda row: row.update(min_steps=0), "field 'min_steps' is 0, expected at least 1"),
        (lambda row: row["env"].update(ceiling="600"), "field 'env': field 'ceiling' is \"600\", expected int"),
        (lambda row: row["chunks"].reverse(), "field 'chunks' must be numbered 0, 1, 2, ... in order by 'idx'"),
    ],
)
def test_a_bad_field_names_file_line_and_field(tmp_path, laptop, change, message):
    row = json.loads(json.dumps(to_row(laptop[0])))
    change(row)
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps(to_row(laptop[1])) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(InputError) as error:
        list(read_instances(path))
    assert str(error.value) == f"{path}:2: {message}"


@pytest.mark.parametrize(("text", "message"), [("{", "1: not JSON"), ("[]", "1 is [], expected an object")])
def test_a_line_that_is_no_object_names_file_and_line(tmp_path, text, message):
    path = tmp_path / "f.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=r"^.*f\.jsonl:") as error:
        list(read_instances(path))
    assert message in str(error.value)


def test_a_damaged_archive_is_the_files_fault(tmp_path, laptop):
    path = tmp_path / "f.jsonl.gz"
    write_rows(path, map(to_row, laptop[:1]))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_instances(path))


def test_a_failing_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.jsonl"
    write_rows(path, [{"a": 1}])

    def rows():
        yield {"a": 2}
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_rows(path, rows())
    assert path.read_text() == '{"a":1}\n'
    assert [p.name for p in tmp_path.iterdir()] == ["f.jsonl"]


def test_a_lone_surrogate_is_written_as_its_escape(tmp_path):
    write_rows(tmp_path / "f.jsonl", [{"answer": "\ud800"}])
    assert json.loads((tmp_path / "f.jsonl").read_text()) == {"answer": "\ud800"}
