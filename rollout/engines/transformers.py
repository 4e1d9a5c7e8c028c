"""transformers' generate behind the engine boundary: whatever is waiting becomes one padded batch.

Slow, exact and without surprises: the honest alternative that vLLM is measured against, and a deterministic
engine on a CPU. All requests of a batch share one seed, that of its first request; a batch is generated to its
longest completion, so episodes move in lockstep.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from env.protocol import Observation
from rollout.engine import Adapter, Completion, FinishReason, Request


class TransformersEngine:
    """Implements rollout.engine.Engine."""

    gives_ids = True

    def __init__(self, model: str, *, dtype: str = "float32", attention: str = "sdpa", most_rows: int = 64) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._model: Any = AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype), attn_implementation=attention).eval()
        self._model.to("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer: Any = AutoTokenizer.from_pretrained(model)
        self._most_rows = most_rows
        self._waiting: list[tuple[Request, asyncio.Future[Completion]]] = []
        self._worker: asyncio.Task[None] | None = None
        self._loaded: dict[Path, str] = {}
        """PEFT's names of adapters by folder."""

    def encode(self, observation: Observation) -> list[int]:
        """Prompt ids by the model's chat template."""
        return list(self._tokenizer.apply_chat_template(observation.messages, add_generation_prompt=True, return_dict=False))

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text for the action parser."""
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=True))

    async def generate(self, request: Request) -> Completion:
        """Complete one request together with all that wait."""
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def close(self) -> None:
        """Wait for the batch that is being generated."""
        if self._worker is not None:
            await self._worker

    async def _work(self) -> None:
        """Batches until nothing waits. Every task that is ready gets its request in first."""
        while True:
            await asyncio.sleep(0)
            if not self._waiting:
                return
            self._waiting.sort(key=lambda item: item[0].priority)
            first = self._waiting[0][0]
            batch = [item for item in self._waiting if _alike(item[0], first)][: self._most_rows]
            self._waiting = [item for item in self._waiting if item not in batch]
            try:
                completions = await asyncio.to_thread(self._generate, [request for request, _ in batch])
            except Exception as error:  # noqa: BLE001 (handed to those who wait)
                for _, future in batch:
                    if not future.cancelled():
                        future.set_exception(error)
                continue
            for (_, future), completion in zip(batch, completions, strict=True):
                if not future.cancelled():
                    future.set_result(completion)

    def _generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One padded batch of requests that share sampling and adapter."""
        import torch

        sampling, pad = requests[0].sampling, self._tokenizer.pad_token_id
        width = max(len(request.prompt_ids) for request in requests)
        ids_BP = [[pad] * (width - len(r.prompt_ids)) + list(r.prompt_ids) for r in requests]
        mask_BP = [[0] * (width - len(r.prompt_ids)) + [1] * len(r.prompt_ids) for r in requests]
        model = self._with(requests[0].adapter)
        torch.manual_seed(requests[0].seed)
        choose: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            choose = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
        with torch.no_grad():
            output = model.generate(
                input_ids=torch.tensor(ids_BP, device=self._model.device),
                attention_mask=torch.tensor(mask_BP, device=self._model.device),
                max_new_tokens=sampling.max_tokens,
                pad_token_id=pad,
                eos_token_id=self._tokenizer.eos_token_id,
                output_scores=True,
                return_dict_in_generate=True,
                **choose,
            )
        logprobs_BT = torch.stack([torch.log_softmax(scores.float(), -1) for scores in output.scores], dim=1)
        sampled_BT = output.sequences[:, width:]
        picked_BT = logprobs_BT.gather(-1, sampled_BT.unsqueeze(-1)).squeeze(-1)
        return [self._completion(ids.tolist(), logprobs.tolist()) for ids, logprobs in zip(sampled_BT, picked_BT, strict=True)]

    def _completion(self, ids: list[int], logprobs: list[float]) -> Completion:
        """Cut a row after its end-of-turn token."""
        end = self._tokenizer.eos_token_id
        if end in ids:
            kept = ids.index(end) + 1
            return Completion(token_ids=ids[:kept], logprobs=logprobs[:kept], finish_reason=FinishReason.STOP)
        return Completion(token_ids=ids, logprobs=logprobs, finish_reason=FinishReason.LENGTH)

    def _with(self, adapter: Adapter | None) -> Any:
        """The model with an adapter switched on, or the bare model."""
        from peft import PeftModel

        if adapter is None:
            return _Disabled(self._model) if isinstance(self._model, PeftModel) else self._model
        name = self._loaded.get(adapter.path, f"adapter{len(self._loaded)}")
        if not isinstance(self._model, PeftModel):
            self._model = PeftModel.from_pretrained(self._model, str(adapter.path), adapter_name=name).eval()
        elif adapter.path not in self._loaded:
            self._model.load_adapter(str(adapter.path), adapter_name=name)
        self._loaded[adapter.path] = name
        self._model.set_adapter(name)
        return self._model


class _Disabled:
    """A PEFT model whose adapters are off while it generates."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def generate(self, **arguments: Any) -> Any:
        with self._model.disable_adapter():
            return self._model.generate(**arguments)


def _alike(a: Request, b: Request) -> bool:
    return a.sampling == b.sampling and a.adapter == b.adapter
