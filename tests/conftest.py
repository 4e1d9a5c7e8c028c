"""Shared parts: a hand-made instance, one tiny random model and one vLLM engine for the whole session of tests."""

from dataclasses import replace

import hypothesis
import pytest

from env.navigator.instance import from_row
from env.navigator.settings import get_profile

# A busy machine is no failure.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def village():
    """A hand-made chain of three hops: chunk 1 leads to 5 and that to 3, which holds the answer 4,210.

    Section A is chunks 0 to 3, B is 4 to 6, noise is 7; each costs 100 tokens, so that nothing needs to be compressed
    and the fewest steps are 4.
    """
    sections = ["A"] * 4 + ["B"] * 3 + ["Log"]
    texts = {
        0: "Abe — Friend: Hal. Pay: 4,180.",
        1: "Ada — Friend: Bo (formerly Hal). Pay: 3,100.",
        2: "Alma — Friend: Hal. Pay: 4,190.",
        3: "Amy — Friend: Hal. Pay: 4,210.\nAmy Minor — Friend: Bo. Pay: 4,280.",
        4: "Bea — Ally: Abe.",
        5: "Bo — Ally: Amy.",
        6: "Hal — Ally: Abe.",
        7: "Rain on <Monday>.",
    }
    steps = [(1, 1, "Ada", "Friend", "Bo"), (2, 5, "Bo", "Ally", "Amy"), (3, 3, "Amy", "Pay", "4,210")]
    traps = [("superseded_link", 1, 1, "Ada", "Hal", "4,180"), ("near_miss_entity", 3, 3, "Amy Minor", "4,280", "4,280")]
    return from_row(
        {
            "id": "village",
            "seed": 0,
            "split": "cases",
            "n_hops": 3,
            "doc_tokens_target": 800,
            "doc_tokens": 800,
            "question": "What is the pay of the ally of the friend of Ada?",
            "answer": "4,210",
            "answer_type": "Pay",
            "answer_entity_type": "a",
            "chunks": [
                {
                    "idx": i,
                    "section": section,
                    "header": section,
                    "kind": "noise" if section == "Log" else "register",
                    "text": texts[i],
                    "tokens": 100,
                    "entity_names": [line.split(" — ")[0] for line in texts[i].split("\n") if " — " in line],
                }
                for i, section in enumerate(sections)
            ],
            "evidence": [
                {"hop": hop, "chunk_idx": chunk, "entity_type": "a", "entity": entity, "field": field, "value": value, "token_offset": 0}
                for hop, chunk, entity, field, value in steps
            ],
            "distractors": [
                {"kind": kind, "hop": hop, "chunk_idx": chunk, "entity": entity, "value": value, "wrong_answer": wrong}
                for kind, hop, chunk, entity, value, wrong in traps
            ],
            "candidate_answers": ["4,210", "4,180", "4,280"],
            "min_reads": 3,
            "min_steps": 4,
            "compression_required": False,
            "env": {"ceiling": 600, "summary_cap": 10},
        }
    )


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory):
    """A random Llama of two layers with the laptop profile's tokenizer."""
    import torch

    from train.pretrain import new_model
    from train.settings import PretrainSettings
    from train.tokenizer import build_tokenizer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = build_tokenizer(get_profile("laptop"))
    settings = replace(PretrainSettings(), hidden_size=64, intermediate_size=64, layers=2, heads=2, wire_copying=False)
    model = new_model(settings, tokenizer, seed=0)
    for parameter in model.parameters():
        if parameter.dim() > 1:  # norms stay 1: with small ones every token would be equally likely
            torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def adapters(tiny_model_dir, tmp_path_factory):
    """Folders of two random LoRA adapters of the tiny model."""
    import torch
    from peft import get_peft_model

    from train.adapters import load_model, lora_config, save_adapter
    from train.config import ModelSettings
    from train.settings import LoraSettings

    folders = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = get_peft_model(load_model(str(tiny_model_dir), ModelSettings()), lora_config(LoraSettings(r=8, alpha=16), dropout=0.0))
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                torch.nn.init.normal_(parameter, std=0.1)
        folders.append(tmp_path_factory.mktemp("adapters") / f"v{seed}")
        save_adapter(model, folders[-1])
    return folders


@pytest.fixture(scope="session")
def vllm(tiny_model_dir):
    """(engine, loop): the one vLLM engine of the session, LoRA on."""
    from rollout.engines.vllm import VllmEngine, VllmSettings
    from rollout.loop import Loop

    with Loop() as loop:
        engine = loop.run(VllmEngine.start(VllmSettings(model=str(tiny_model_dir), max_num_seqs=16, max_lora_rank=8)))
        yield engine, loop
        loop.run(engine.close())
