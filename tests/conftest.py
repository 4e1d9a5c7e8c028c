"""Shared parts: one tiny random model and one vLLM engine for the whole session of tests."""

from dataclasses import replace

import pytest
from hypothesis import settings

from env.navigator.settings import get_profile

# A loaded machine takes as long as it takes: an example may not fail for its time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


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
