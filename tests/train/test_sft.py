import pytest

from env.errors import InputError
from env.navigator.instance import write_rows
from train.sft import load_rows, tokenise


@pytest.fixture(scope="module")
def tokenizer(tiny_model_dir):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model_dir)


ROW = {
    "messages": [{"role": "system", "content": "Answer the question."}, {"role": "user", "content": "Question: next"}],
    "completion": "ACTION: READ 3",
}


def test_only_the_completion_and_the_end_of_turn_are_learnt(tokenizer):
    made = tokenise(tokenizer, ROW, "here")
    kept = [label for label in made["labels"] if label != -100]
    assert tokenizer.convert_ids_to_tokens(kept) == [" ACTION", ":", " READ", " 3", "<end>"]
    assert made["input_ids"][-len(kept) :] == kept
    assert tokenizer.convert_ids_to_tokens(made["input_ids"][: -len(kept)])[-1] == "<assistant>"
    assert len(made["labels"]) == len(made["input_ids"])


@pytest.mark.parametrize("change", [{"completion": " "}, {"completion": 3}, {"messages": None}])
def test_a_row_without_a_target_is_an_error_with_its_line(tokenizer, tmp_path, change):
    write_rows(tmp_path / "rows.jsonl", [ROW, ROW | change])
    with pytest.raises(InputError, match=r"rows\.jsonl:2: "):
        load_rows(tokenizer, tmp_path / "rows.jsonl", 100)


def test_longer_rows_are_dropped_whole_and_counted(tokenizer, tmp_path):
    long = ROW | {"completion": "READ 3 " * 50}
    write_rows(tmp_path / "rows.jsonl", [ROW, long, ROW])
    kept, dropped = load_rows(tokenizer, tmp_path / "rows.jsonl", 60)
    assert (len(kept), dropped) == (2, 1)
    with pytest.raises(InputError, match="none of its 3 rows fits sft.max_length 5"):
        load_rows(tokenizer, tmp_path / "rows.jsonl", 5)
