from dataclasses import replace
from itertools import islice

import pytest
import torch

from env.navigator.episode import NavigatorEpisode
from env.navigator.generate import instances
from env.navigator.policies import Oracle
from env.navigator.settings import get_profile
from train.exercises import examples
from train.pretrain import new_model, pretrain, tokenise
from train.settings import PretrainSettings
from train.tokenizer import build_tokenizer
from train.wiring import wire_copying

SMALL = replace(
    PretrainSettings(), hidden_size=64, heads=2, layers=2, intermediate_size=64, processes=1, batch_tokens=1024, log_steps=2, save_steps=2
)


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(get_profile("laptop"))


def test_every_prompt_and_response_of_the_laptop_profile_round_trips(tokenizer):
    for split in ("dev", "ood_test"):
        for instance in instances(get_profile("laptop"), split, 100, 5):
            episode, oracle = NavigatorEpisode(instance), Oracle(0, noise=0.3)
            episode.step("nonsense")
            while episode.ending is None:
                response = oracle(episode)
                for text in (*(m["content"] for m in episode.observe().messages), response):
                    ids = tokenizer.encode(text, add_special_tokens=False)
                    assert tokenizer.unk_token_id not in ids
                    assert tokenizer.decode(ids) == text
                episode.step(response)


def test_a_name_is_the_same_tokens_wherever_it_stands(tokenizer):
    texts = ["Ada Lind", "x\nAda Lind", "lead: Ada Lind", "≤ Ada Lind"]
    assert len({tuple(tokenizer.encode(text)[-2:]) for text in texts}) == 1


def test_digits_of_values_stand_alone_and_standing_numbers_are_whole(tokenizer):
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("READ 12 and PJ-857 or 2,578 in 2019")) == [
        " READ", " 12", " and", " PJ", "-", "8", "5", "7", " or", " 2", ",", "5", "7", "8", " in", " 2019",
    ]  # fmt: skip


def test_exercises_weigh_what_the_context_determines_and_hold_no_action(tokenizer):
    for example in islice(examples(get_profile("laptop"), 3, 0.5, 0), 60):
        ids, weights = tokenise(tokenizer, example)
        assert len(ids) == len(weights)
        assert weights[0] == 0.0
        assert sum(w == 1.0 for w in weights) == sum(len(tokenizer.encode(answer)) + 1 for _, answer in example.lines)
        assert "ACTION:" not in tokenizer.decode(ids)
        assert tokenizer.unk_token_id not in ids


def test_exercises_repeat_by_seed(tokenizer):
    first, again, other = (list(islice(examples(get_profile("laptop"), seed, 0.5, 0), 12)) for seed in (3, 3, 4))
    assert first == again != other


def test_wired_heads_copy_before_any_training(tokenizer):
    torch.manual_seed(0)
    model = new_model(PretrainSettings(), tokenizer, seed=0).eval()
    run = torch.randint(100, 800, (4, 50))
    ids = torch.cat([run, run], dim=1)
    with torch.no_grad():
        predicted = model(ids).logits.argmax(-1)
    assert (predicted[:, 50:-1] == ids[:, 51:]).float().mean() > 0.85
    plain = new_model(replace(PretrainSettings(), wire_copying=False), tokenizer, seed=0)
    wire_copying(plain, seed=0)
    assert plain.state_dict().keys() == model.state_dict().keys()


def test_pretraining_writes_a_model_folder_and_goes_on_where_it_stopped(tmp_path):
    rows = []
    env = get_profile("laptop")
    pretrain(env, replace(SMALL, tokens=4096), tmp_path / "base", seed=0, log=rows.append)
    pretrain(env, replace(SMALL, tokens=8192), tmp_path / "base", seed=0, log=rows.append)
    assert [row["tokens"] for row in rows] == [2048, 4096, 6144, 8192]
    assert (tmp_path / "base" / "model.safetensors").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_every_number_is_known_years_or_not(tokenizer):
    ids = tokenizer([f"Badge: {number}." for number in range(100, 10_000)], add_special_tokens=False)["input_ids"]
    assert tokenizer.unk_token_id not in {token for row in ids for token in row}
