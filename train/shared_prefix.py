"""Rows that begin alike: their common prefix is computed once, forward and backward.

All steps of all episodes of an instance begin with the same rules, question and map. The prefix of each
instance is run alone, its keys and values stay in the graph, and every row attends to those of its own
instance; backward, their gradients add up. What is left of the rows is run in groups of like length. The result
is that of the padded rows up to rounding (with LoRA dropout, rows that share a prefix also share its mask), on
any device, with gradient checkpointing too.
"""

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch.nn.functional import pad as pad_tensor
from transformers.cache_utils import Cache, DynamicLayer
from transformers.modeling_outputs import BaseModelOutputWithPast

_LIKE = 0.75
"""Rows are run together when the shortest has at least this share of the tokens of the longest."""


def common_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """Leading tokens that all prompts have in common; at least one token of each prompt is left over."""
    first, shortest = prompts[0], min(map(len, prompts)) - 1
    return next((i for i in range(shortest) if any(prompt[i] != first[i] for prompt in prompts)), shortest)


class Packed:
    """Rows of a micro-batch, prefixes apart, padded on the left."""

    def __init__(self, prompts_B: Sequence[Sequence[int]], keys_B: Sequence[Hashable], pad: int) -> None:
        """Rows of equal key (an instance) share what their prompts begin with."""
        members: dict[Hashable, list[Sequence[int]]] = {}
        for prompt, key in zip(prompts_B, keys_B, strict=True):
            members.setdefault(key, []).append(prompt)
        lengths = {key: common_prefix(prompts) for key, prompts in members.items()}
        self.rests_B = [list(prompt[lengths[key] :]) for prompt, key in zip(prompts_B, keys_B, strict=True)]
        """What is left of each prompt."""
        self.fields: dict[str, torch.Tensor] = {}
        """Arguments of a model after `accept_prefixes`: shapes (K, P), (K, P), (B,); none when nothing is shared."""
        if any(lengths.values()):
            ids_KP, mask_KP = pad_left([prompts[0][: lengths[key]] for key, prompts in members.items()], pad)
            number = {key: k for k, key in enumerate(members)}
            self.fields = {"prefix_ids": ids_KP, "prefix_mask": mask_KP, "prefix_of": torch.tensor([number[key] for key in keys_B])}


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


def alike(lengths_B: Sequence[int]) -> list[tuple[int, list[int]]]:
    """(width, rows) of groups of like length, longest first."""
    groups: list[tuple[int, list[int]]] = []
    for row in sorted(range(len(lengths_B)), key=lambda row: -lengths_B[row]):
        if not groups or lengths_B[row] < _LIKE * groups[-1][0]:
            groups.append((lengths_B[row], []))
        groups[-1][1].append(row)
    return groups


def accept_prefixes(model: Any) -> None:
    """Let a causal language model take `prefix_ids`, `prefix_mask` and `prefix_of` beside left-padded rows, in place.

    Hidden states of padding are zero then. Only for models whose layers all attend to everything before.
    """
    backbone = model.base_model
    plain = backbone.forward
    for layer in backbone.layers:
        # Safe with these caches: see _Recorded and _Continued.
        layer._can_checkpoint_with_cache = True

    @functools.wraps(type(backbone).forward)
    def forward(
        *args: Any,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        prefix_ids: torch.Tensor | None = None,
        prefix_mask: torch.Tensor | None = None,
        prefix_of: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        if prefix_ids is None:
            return plain(*args, input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        assert input_ids is not None
        assert attention_mask is not None
        assert prefix_mask is not None
        assert prefix_of is not None
        recorded = Cache(layers=[_Recorded() for _ in backbone.layers])
        positions_KP = _positions(prefix_mask)
        plain(input_ids=prefix_ids, attention_mask=prefix_mask, position_ids=positions_KP, past_key_values=recorded, use_cache=False)
        hidden: list[torch.Tensor] = [input_ids.new_empty(0)] * len(input_ids)
        length = input_ids.size(1)
        for width, rows in alike((length - attention_mask.argmax(-1)).tolist()):
            of = prefix_of[rows]
            mask_BL = torch.cat([prefix_mask[of], attention_mask[rows, length - width :]], dim=1)
            output = plain(
                input_ids=input_ids[rows, length - width :],
                attention_mask=mask_BL,
                position_ids=_positions(mask_BL)[:, -width:],
                past_key_values=Cache(layers=[_Continued(layer.keys[of], layer.values[of]) for layer in recorded.layers]),
                use_cache=False,
            )
            for row, states_LD in zip(rows, output.last_hidden_state, strict=True):
                hidden[row] = pad_tensor(states_LD, (0, 0, length - width, 0))
        return BaseModelOutputWithPast(last_hidden_state=torch.stack(hidden))

    backbone.forward = forward
