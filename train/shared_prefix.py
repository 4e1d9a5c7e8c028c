"""Rows that begin alike: their common prefix is computed once, forward and backward.

All steps of all episodes of an instance begin with the same rules, question and map. The prefix of each
instance is run alone, its keys and values stay in the graph, and every row attends to those of its own
instance; backward, their gradients add up. The result is that of the padded rows up to rounding (with LoRA
dropout, rows that share a prefix also share its mask), on any device, with gradient checkpointing too.
"""

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer


def common_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """Leading tokens that all prompts have in common; at least one token of each prompt is left over."""
    first, shortest = prompts[0], min(map(len, prompts)) - 1
    return next((i for i in range(shortest) if any(prompt[i] != first[i] for prompt in prompts)), shortest)


class Packed:
    """Rows of a micro-batch, prefixes apart, padded on the left."""

    def __init__(self, prompts_B: Sequence[Sequence[int]], keys_B: Sequence[Hashable], pad: int) -> None:
        """Rows of equal key (an instance) share what their prompts begin with."""
        members: dict[Hashable, list[int]] = {}
        for row, key in enumerate(keys_B):
            members.setdefault(key, []).append(row)
        lengths = [common_prefix([prompts_B[row] for row in rows]) for rows in members.values()]
        prefixes = [list(prompts_B[rows[0]][:length]) for rows, length in zip(members.values(), lengths, strict=True)]
        number = {row: k for k, rows in enumerate(members.values()) for row in rows}
        self.rests_B = [list(prompt[lengths[number[row]] :]) for row, prompt in enumerate(prompts_B)]
        """What is left of each prompt."""
        ids_KP, mask_KP = pad_left(prefixes, pad)
        self.fields = {
            "prefix_ids": ids_KP,
            "prefix_mask": mask_KP,
            "prefix_of": torch.tensor([number[row] for row in range(len(prompts_B))]),
        }
        """Arguments of a model after `accept_prefixes`: shapes (K, P), (K, P), (B,)."""


def pad_left(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, mask) of rows that end at the same column."""
    width = max(map(len, rows))
    ids = torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows])
    return ids, torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])


class _Recorded(DynamicLayer):  # type: ignore[misc]
    """Keeps the keys and values of one pass. A recomputation under checkpointing replaces them by equal ones."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys, self.values = key_states, value_states
        return key_states, value_states


class _Continued(DynamicLayer):  # type: ignore[misc]
    """Prefix keys and values before those of a pass; never grows, so that a recomputation finds what the pass found."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()
        self.keys, self.values, self.is_initialized = keys, values, True

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat([self.keys, key_states], dim=-2), torch.cat([self.values, value_states], dim=-2)


def _positions(mask: torch.Tensor) -> torch.Tensor:
    return (mask.cumsum(-1) - 1).clamp(min=0)


def accept_prefixes(model: Any) -> None:
    """Let a causal language model take `prefix_ids`, `prefix_mask` and `prefix_of` beside its usual arguments, in place.

    Call it before PEFT or a trainer wraps the model. Only for models whose layers all attend to everything before.
    """
    backbone = model.base_model
    plain = backbone.forward
    for layer in backbone.layers:
        # Safe with these caches: see _Recorded and _Continued.
        layer._can_checkpoint_with_cache = True

    @functools.wraps(type(backbone).forward)
    def forward(
        *args: Any,
        prefix_ids: torch.Tensor | None = None,
        prefix_mask: torch.Tensor | None = None,
        prefix_of: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        if prefix_ids is None:
            return plain(*args, **kwargs)
        assert prefix_mask is not None
        assert prefix_of is not None
        recorded = Cache(layers=[_Recorded() for _ in backbone.layers])
        positions_KP = _positions(prefix_mask)
        plain(input_ids=prefix_ids, attention_mask=prefix_mask, position_ids=positions_KP, past_key_values=recorded, use_cache=False)
        mask_BL = torch.cat([prefix_mask[prefix_of], kwargs["attention_mask"]], dim=1)
        continued = Cache(layers=[_Continued(layer.keys[prefix_of], layer.values[prefix_of]) for layer in recorded.layers])
        positions_BL = _positions(mask_BL)[:, prefix_ids.size(1) :]
        return plain(*args, **kwargs | {"attention_mask": mask_BL, "position_ids": positions_BL, "past_key_values": continued})

    backbone.forward = forward
