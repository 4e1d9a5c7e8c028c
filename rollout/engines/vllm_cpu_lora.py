"""LoRA on a CPU for vLLM's worker: one matrix product for each adapter of a batch.

vLLM 0.32 gathers a copy of the adapter's matrices for every token, which takes most of a rollout's time, and serves a
token without an adapter by the one in the last slot (its index is -1). A worker loads this module as its extension;
importing it puts these products in the place of the gathering ones. GPUs have kernels of their own.
"""

import torch
from vllm.lora.ops.torch_ops import lora_ops
from vllm.lora.punica_wrapper import punica_cpu


class CpuLora:
    """Empty: vLLM wants a class to extend its worker by."""


def by_adapter(inputs_TI: torch.Tensor, weights: torch.Tensor, indices_T: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Each token's product with the matrix of its adapter, zero where its index is negative; (T, O).

    `weights` is (adapters, O, I) or (adapters, 1, O, I).
    """
    weights_NOI = weights.squeeze(1) if weights.dim() == 4 else weights
    present = indices_T.unique().tolist()
    if len(present) == 1 and present[0] >= 0:
        return inputs_TI.to(dtype) @ weights_NOI[present[0]].to(dtype).T
    outputs_TO = inputs_TI.new_zeros((len(inputs_TI), weights_NOI.size(1)), dtype=dtype)
    for adapter in present:
        if adapter >= 0:
            rows = indices_T == adapter
            outputs_TO[rows] = inputs_TI[rows].to(dtype) @ weights_NOI[adapter].to(dtype).T
    return outputs_TO


def _shrink(inputs: torch.Tensor, weights: torch.Tensor, output: torch.Tensor, indices: torch.Tensor, scaling: float = 1.0) -> None:
    products = by_adapter(inputs, weights, indices, output.dtype)
    output[:, : products.size(1)] = scaling * products


def _expand(inputs: torch.Tensor, weights: torch.Tensor, output: torch.Tensor, indices: torch.Tensor, add_inputs: bool = True) -> None:
    products = by_adapter(inputs, weights, indices, output.dtype)
    # A layer may be padded to more columns than its adapter.
    width = min(products.size(1), output.size(1))
    _put(output[:, :width], products[:, :width], add_inputs)


def _expand_slice(
    inputs: torch.Tensor,
    weights: torch.Tensor,
    output: torch.Tensor,
    indices: torch.Tensor,
    offset: int,
    size: int,
    add_inputs: bool = True,
) -> None:
    _put(output[:, offset : offset + size], by_adapter(inputs, weights, indices, output.dtype), add_inputs)


def _put(target: torch.Tensor, products: torch.Tensor, add: bool) -> None:
    if add:
        target += products
    else:
        target.copy_(products)


for _module in (lora_ops, punica_cpu):
    _module.bgmv_shrink = _shrink
    _module.bgmv_expand = _expand
    _module.bgmv_expand_slice = _expand_slice
