import pytest

from env.errors import InputError
from env.navigator.instance import read_rows, write_rows
from train.config import load_config
from train.resume import resume_from
from train.sft import collate, load_episodes, run_sft, tokenise


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
    assert tokenizer.convert_ids_to_tokens(made["completion"]) == [" ACTION", ":", " READ", " 3", "<end>"]
    assert tokenizer.convert_ids_to_tokens(made["prompt"])[-1] == "<assistant>"
    batch = collate([{"rows": [made]}], pad=0)
    assert batch["labels"].tolist() == [[-100] + made["completion"]]  # all of the prompt but its last token is the prefix
    assert batch["prefix_ids"].tolist() == [made["prompt"][:-1]]


def test_a_batch_keeps_what_the_rows_of_an_episode_begin_with_apart():
    first = [{"prompt": [1, 2, 3], "completion": [9]}, {"prompt": [1, 2, 4, 5], "completion": [8, 9]}]
    batch = collate([{"rows": first}, {"rows": [{"prompt": [6, 7], "completion": [9]}]}], pad=0)
    assert batch["prefix_ids"].tolist() == [[1, 2], [0, 6]]
    assert batch["prefix_of"].tolist() == [0, 0, 1]
    assert batch["input_ids"].tolist() == [[0, 0, 3, 9], [4, 5, 8, 9], [0, 0, 7, 9]]
    assert batch["labels"].tolist() == [[-100, -100, -100, 9], [-100, -100, 8, 9], [-100, -100, -100, 9]]


@pytest.mark.parametrize("change", [{"completion": " "}, {"completion": 3}, {"messages": None}])
def test_a_row_without_a_target_is_an_error_with_its_line(tokenizer, tmp_path, change):
    write_rows(tmp_path / "rows.jsonl", [ROW, ROW | change])
    with pytest.raises(InputError, match=r"rows\.jsonl:2: "):
        load_episodes(tokenizer, tmp_path / "rows.jsonl", 100)


def test_longer_rows_are_dropped_whole_and_counted(tokenizer, tmp_path):
    long = ROW | {"completion": "READ 3 " * 50}
    write_rows(tmp_path / "rows.jsonl", [ROW, long, ROW])
    kept, dropped = load_episodes(tokenizer, tmp_path / "rows.jsonl", 60)
    assert (list(map(len, kept)), dropped) == ([1, 1], 1)
    with pytest.raises(InputError, match="none of its 3 rows fits sft.max_length 5"):
        load_episodes(tokenizer, tmp_path / "rows.jsonl", 5)


def test_rows_of_an_instance_that_follow_one_another_are_an_episode(tokenizer, tmp_path):
    write_rows(tmp_path / "rows.jsonl", [ROW | {"instance_id": name} for name in "aabba"])
    assert list(map(len, load_episodes(tokenizer, tmp_path / "rows.jsonl", 100)[0])) == [2, 2, 1]


INPUTS = {"seed": 0}


def checkpoint(folder, step, whole):
    path = folder / "checkpoints" / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "optimizer.pt").write_text("")
    if whole:
        (path / "trainer_state.json").write_text("{}")
    return path


def test_training_goes_on_from_the_newest_whole_checkpoint_and_half_ones_are_removed(tmp_path):
    assert resume_from(tmp_path, INPUTS) is None
    half = checkpoint(tmp_path, 10, whole=False)
    assert resume_from(tmp_path, INPUTS) is None
    assert not half.exists()
    paths = [checkpoint(tmp_path, step, whole=True) for step in (2, 10, 9)]
    assert resume_from(tmp_path, INPUTS) == str(paths[1])


def test_what_other_inputs_left_is_removed_and_training_begins(tmp_path, capsys):
    resume_from(tmp_path, INPUTS)
    assert capsys.readouterr().err == ""
    path = checkpoint(tmp_path, 2, whole=True)
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    assert resume_from(tmp_path, {**INPUTS, "seed": 1}) is None
    assert capsys.readouterr().err == f"{tmp_path}: what is there was made with other settings, data or weights; starting over\n"
    assert not path.exists()
    assert not (tmp_path / "metrics.jsonl").exists()
    assert resume_from(tmp_path, {**INPUTS, "seed": 1}) is None


def test_checkpoints_that_nobody_vouches_for_are_not_gone_on_from(tmp_path):
    path = checkpoint(tmp_path, 2, whole=True)
    assert resume_from(tmp_path, INPUTS) is None
    assert not path.exists()


def test_a_killed_training_goes_on_and_other_settings_start_over(tiny_model_dir, tmp_path):
    write_rows(tmp_path / "rows.jsonl", [ROW] * 8)
    short = ["sft.batch_size=4", "sft.micro_batch_size=2", "sft.save_steps=1", "sft.log_steps=1", "sft.epochs=2.0", "lora.r=4"]
    slow, fast = (load_config(None, [*short, f"model.path={tiny_model_dir}", f"sft.learning_rate={rate}"]) for rate in (1e-3, 1e-2))

    def train(config):
        facts = run_sft(config, tmp_path / "rows.jsonl", tmp_path / "sft")
        assert (facts["rows"], facts["dropped_rows"], facts["steps"]) == (8, 0, 4)
        return [row for _, row in read_rows(tmp_path / "sft" / "metrics.jsonl")]

    assert [row["step"] for row in train(slow)] == [1, 2, 3, 4]
    (tmp_path / "sft" / "checkpoints" / "checkpoint-4" / "trainer_state.json").unlink()  # as a kill leaves it
    assert [row["step"] for row in train(slow)] == [1, 2, 3, 4, 4]
    logged = train(fast)
    assert [row["step"] for row in logged] == [1, 2, 3, 4]
    assert logged[-1]["loss"] < logged[0]["loss"]
    assert (tmp_path / "sft" / "adapter" / "adapter_model.safetensors").exists()
    assert (tmp_path / "sft" / "merged" / "model.safetensors").exists()
