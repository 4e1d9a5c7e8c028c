import pytest
import torch
from peft import get_peft_model

from train.adapters import load_model, lora_config
from train.config import ModelSettings
from train.settings import LoraSettings
from train.shared_prefix import Packed, accept_prefixes, alike, common_prefix, pad_left

PROMPTS = [[5, 6, 7, 8, 9], [5, 6, 7, 10], [11, 12, 13, 14, 15, 16], [11, 12, 13, 14, *range(20, 42)], [30, 31, 32]]
KEYS = ["a", "a", "b", "b", "c"]
ENDS = [[40, 41], [42], [43, 44, 45], [46], [47, 48]]


def test_what_prompts_begin_with_leaves_at_least_one_token_of_each():
    assert common_prefix([[1, 2, 3], [1, 2, 4]]) == 2
    assert common_prefix([[1, 2], [1, 2, 3]]) == 1
    assert common_prefix([[1, 2, 3]]) == 2
    assert common_prefix([[1], [2]]) == 0


def test_prefixes_are_taken_off_and_numbered():
    packed = Packed(PROMPTS, KEYS, pad=0)
    assert packed.rests_B == [[8, 9], [10], [15, 16], [*range(20, 42)], [32]]
    assert packed.fields["prefix_ids"].tolist() == [[0, 5, 6, 7], [11, 12, 13, 14], [0, 0, 30, 31]]
    assert packed.fields["prefix_mask"].tolist() == [[0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]]
    assert packed.fields["prefix_of"].tolist() == [0, 0, 1, 1, 2]


def test_prompts_that_begin_differently_share_nothing():
    packed = Packed([[1, 2], [3]], ["a", "a"], pad=0)
    assert (packed.rests_B, packed.fields) == ([[1, 2], [3]], {})


def policy(folder, checkpointing):
    torch.manual_seed(3)
    model = load_model(str(folder), ModelSettings())
    accept_prefixes(model)
    model = get_peft_model(model, lora_config(LoraSettings(r=8, alpha=16), dropout=0.0))
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    if checkpointing:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def completion_logprobs(model, prompts, fields):
    """Log-probabilities of ENDS after PROMPTS, row by row in one list of tensors."""
    left, left_mask = pad_left(prompts, 0)
    right = torch.tensor([end + [0] * (3 - len(end)) for end in ENDS])
    ids, mask = torch.cat([left, right], 1), torch.cat([left_mask, (right > 0).long()], 1)
    table = torch.log_softmax(model(input_ids=ids, attention_mask=mask, use_cache=False, **fields).logits, -1)
    found = []
    for row, end in enumerate(ENDS):
        at = torch.arange(left.size(1) - 1, left.size(1) - 1 + len(end))
        found.append(table[row, at, torch.tensor(end)])
    return torch.cat(found)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_logprobs_and_gradients_are_those_of_padded_rows(tiny_model_dir, checkpointing):
    packed = Packed(PROMPTS, KEYS, pad=0)
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0, -1.0, 2.0, 0.7, -0.3, 1.5])
    results = []
    for prompts, fields in ((PROMPTS, {}), (packed.rests_B, packed.fields)):
        model = policy(tiny_model_dir, checkpointing)
        logprobs = completion_logprobs(model, prompts, fields)
        (logprobs * weights).sum().backward()
        results.append((logprobs.detach(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    (plain, plain_grads), (shared, shared_grads) = results
    assert torch.allclose(plain, shared, atol=1e-5)
    assert plain_grads.keys() == shared_grads.keys() != set()
    for name, grad in plain_grads.items():
        assert (grad - shared_grads[name]).norm() <= 1e-4 * grad.norm(), name


def test_a_model_that_accepts_prefixes_is_unchanged_without_one(tiny_model_dir):
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        before = load_model(str(tiny_model_dir), ModelSettings())(input_ids=ids).logits
        model = load_model(str(tiny_model_dir), ModelSettings())
        accept_prefixes(model)
        assert torch.equal(before, model(input_ids=ids).logits)


def test_rows_of_like_length_are_run_together():
    assert alike([10, 100, 80, 9, 74]) == [(100, [1, 2]), (74, [4]), (10, [0, 3])]
