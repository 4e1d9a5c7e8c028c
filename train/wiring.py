"""Wires copying into a random initialisation: a previous-token head, and induction heads that use it.

A model of one million parameters learns to copy a name only after tens of millions of tokens, if it is left to
find the circuit "what followed this token before?" by itself (measured: nothing after 15 million). The circuit
is small and known (Elhage et al. 2021; Olsson et al. 2022), so it is written into the first layers and everything
else is learnt as usual. No weight is frozen.

    layer 0, head 0    attends to the token before, by its biases alone, and copies that token's code aside
    layer 1, heads 0 and 1    attend from a token to the place after its earlier occurrence, and copy what stands there,
                              each one half of a code as wide as both heads

Matching needs rotary pairs that hardly turn over a prompt, so codes live in the slow pairs only.
"""

import math
from typing import Any

import torch

_SHARPNESS = 60.0
"""Logit of the token before in layer 0; those beside it get a tenth less."""
_FAST = 0.02
"""Rotary pairs that turn faster than this many radians a token tell neighbours apart."""
_ASIDE = 2.0
"""Size of the copied code beside the token's own."""
_MATCH = 40.0
"""Logit of an exact match in the induction layers."""
_COPY = 4.0
"""Size of what an induction head writes."""
_INDUCTION_HEADS = (0, 1)
_HORIZON = 300
"""Slow pairs turn by less than one radian over this many tokens."""


def wire_copying(model: Any, *, seed: int) -> None:
    """Overwrite three heads of the first two layers of a Llama with attention biases, in place."""
    config = model.config
    width, head = config.hidden_size, config.hidden_size // config.num_attention_heads
    half = head // 2
    theta = config.rope_parameters["rope_theta"]
    frequencies = torch.tensor([theta ** (-i / half) for i in range(half)], dtype=torch.float64)
    slow = [i for i in range(half) if frequencies[i] * _HORIZON < 1]
    slots = [*slow, *(half + i for i in slow)]
    generator = torch.Generator().manual_seed(seed)
    # Orthonormal rows: the code that is matched (as many as slow slots) and two spaces to copy through.
    basis = torch.linalg.qr(torch.randn(width, width, generator=generator))[0]
    code, aside = basis[: len(slots)], basis[len(slots) : 2 * len(slots)]
    with torch.no_grad():
        embeddings = model.model.embed_tokens.weight
        drawn = torch.randn(embeddings.shape, generator=generator) / math.sqrt(width)
        # Room for the copied code: a token's own embedding has nothing there.
        embeddings.copy_(drawn - drawn @ aside.T @ aside)
        _previous_token(model.model.layers[0].self_attn, head, frequencies, code, aside)
        copied = torch.linalg.qr(torch.randn(width, width, generator=generator))[0]
        for number in _INDUCTION_HEADS:
            rows = slice(number * head, (number + 1) * head)
            _induction(model.model.layers[1].self_attn, rows, slots, code, aside, copied[rows])


def _previous_token(attention: Any, head: int, frequencies: torch.Tensor, code: torch.Tensor, aside: torch.Tensor) -> None:
    """Query and key are biases: rotated, their product is sum(cos((distance - 1) * frequency)), largest at distance 1."""
    half = head // 2
    fast = frequencies > _FAST
    scale = math.sqrt(_SHARPNESS * math.sqrt(head) / fast.sum().item())
    query, key = torch.zeros(head), torch.zeros(head)
    query[:half] = scale * fast
    # A key that stands one position further on meets the query where a plain one would at distance 1.
    key[:half] = scale * fast * torch.cos(frequencies)
    key[half:] = scale * fast * torch.sin(frequencies)
    attention.q_proj.weight[:head] = 0
    attention.k_proj.weight[:head] = 0
    attention.q_proj.bias[:head] = query
    attention.k_proj.bias[:head] = key
    attention.v_proj.weight[:head] = 0
    attention.v_proj.weight[: len(code)] = code
    attention.v_proj.bias[:head] = 0
    attention.o_proj.weight[:, :head] = 0
    attention.o_proj.weight[:, : len(aside)] = _ASIDE / math.sqrt(code.shape[1]) * aside.T


def _induction(attention: Any, rows: slice, slots: list[int], code: torch.Tensor, aside: torch.Tensor, copied: torch.Tensor) -> None:
    """Query: this token's code. Key: the code of the token before. Value: the token itself."""
    width, head = code.shape[1], len(copied)
    # After the norm a token of size 1 beside a code of size _ASIDE * share has these sizes in the two spaces.
    share = math.sqrt(len(slots) / width)
    own = math.sqrt(width) * share / math.sqrt(1 + (_ASIDE * share) ** 2)
    scale = math.sqrt(_MATCH * math.sqrt(head) / (own * own * _ASIDE))
    for projection, space in ((attention.q_proj, code), (attention.k_proj, aside)):
        weight = torch.zeros(head, width)
        weight[slots] = scale * space
        projection.weight[rows] = weight
        projection.bias[rows] = 0
    attention.v_proj.weight[rows] = copied
    attention.v_proj.bias[rows] = 0
    attention.o_proj.weight[:, rows] = _COPY / math.sqrt(width) * copied.T
