"""vLLM in process: AsyncLLM with prefix caching and LoRA, the same code on a CPU and on a GPU.

Token ids go in and come out; text is made from ids only for the action parser. The log-probabilities are
those of the distribution that was sampled from ("processed"). Nothing here waits for a batch: vLLM decides
what is computed together.
"""

import asyncio
import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from env.errors import EngineDied, InputError, SettingError
from env.protocol import Observation
from rollout.engine import Adapter, Completion, FinishReason, Request
from rollout.guard import Guard


@dataclass(frozen=True, kw_only=True, slots=True)
class VllmSettings:
    """How the engine is started."""

    model: str
    """Folder or hub name."""
    dtype: str = "float32"
    max_model_len: int = 1024
    """Longest prompt + completion."""
    max_num_seqs: int = 128
    """Requests decoded at once."""
    max_batched_tokens: int = 8192
    """Tokens of one engine step, prompts and decoding together."""
    kv_cache_gib: float = 1.0
    """Cache size on a CPU."""
    gpu_memory_utilization: float = 0.85
    """Cache and weights on a GPU."""
    max_loras: int = 3
    """Adapters held at once: allowed staleness + 2, or a new one waits for an old one to drain."""
    max_lora_rank: int = 32
    """0 switches LoRA off."""
    enforce_eager: bool = True
    """No compilation: a faster start, slower decoding on a GPU."""
    seed: int = 0


def engine_arguments(settings: VllmSettings) -> dict[str, Any]:
    """Arguments of vLLM's AsyncEngineArgs, or of its LLM."""
    arguments: dict[str, Any] = {
        "model": settings.model,
        "dtype": settings.dtype,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": max(settings.max_batched_tokens, settings.max_model_len),
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "enforce_eager": settings.enforce_eager,
        "enable_prefix_caching": True,
        # A prompt that was cut in two kills vLLM 0.32 on a CPU where its request has a seed ("CPU Generator does not use offset").
        "enable_chunked_prefill": False,
        "distributed_executor_backend": "uni",
        "logprobs_mode": "processed_logprobs",
        "scheduling_policy": "priority",
        "generation_config": "vllm",
        "disable_log_stats": True,
        "seed": settings.seed,
    }
    if settings.max_lora_rank:
        from vllm.platforms import current_platform

        if current_platform.is_cpu():
            arguments["worker_extension_cls"] = "rollout.engines.vllm_cpu_lora.CpuLora"
        arguments |= {"enable_lora": True, "max_loras": settings.max_loras, "max_lora_rank": _lora_rank(settings.max_lora_rank)}
    return arguments


class VllmEngine:
    """Implements rollout.engine.Engine. Bound to the event loop that starts it."""

    gives_ids = True

    def __init__(self, llm: Any, tokenizer: Any) -> None:
        self._llm = llm
        self._tokenizer = tokenizer
        self._guard = Guard([child.pid for child in _processes() if child.pid])
        self._loaded: dict[Path, asyncio.Task[Any]] = {}
        """vLLM's LoRA requests by folder."""

    @classmethod
    async def start(cls, settings: VllmSettings) -> "VllmEngine":
        """Load the model; 15-60 s on a CPU. EngineDied when vLLM does not come up."""
        prepare_process(settings)
        from pydantic import ValidationError
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        try:
            llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**engine_arguments(settings)))
        except ValidationError as error:
            raise SettingError(f"vLLM refuses the settings under engine: {error.errors()[0]['msg']}") from error
        except RuntimeError as error:
            raise EngineDied("vLLM did not start; what it printed above says why") from error
        return cls(llm, llm.get_tokenizer())

    def encode(self, observation: Observation) -> list[int]:
        """Prompt ids by the model's chat template."""
        ids = self._tokenizer.apply_chat_template(observation.messages, add_generation_prompt=True, tokenize=True, return_dict=False)
        return list(ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text for the action parser."""
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=True))

    async def generate(self, request: Request) -> Completion:
        """Complete one request. EngineDied when vLLM is gone."""
        from vllm import SamplingParams, TokensPrompt
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError

        sampling = request.sampling
        parameters = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=sampling.max_tokens,
            seed=request.seed,
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = TokensPrompt(prompt_token_ids=list(request.prompt_ids))
        try:
            lora = None if request.adapter is None else await self._lora(request.adapter)
            stream = self._llm.generate(prompt, parameters, request.request_id, lora_request=lora, priority=request.priority)
            outputs = [output async for output in stream]
        except EngineDeadError as error:
            raise EngineDied("the vLLM engine died; its own log says why (VLLM_LOGGING_LEVEL=INFO shows it)") from error
        (output,) = outputs
        (sampled,) = output.outputs
        return Completion(
            token_ids=list(sampled.token_ids),
            logprobs=[entry[token].logprob for token, entry in zip(sampled.token_ids, sampled.logprobs, strict=True)],
            finish_reason=FinishReason(sampled.finish_reason),
            cached_tokens=output.num_cached_tokens or 0,
        )

    async def _lora(self, adapter: Adapter) -> Any:
        """The request object of an adapter, loaded once before the first request that names it.

        Left to that request, an adapter that vLLM cannot load would kill the engine.
        """
        if adapter.path not in self._loaded:
            # vLLM knows adapters by number and its prefix cache by name: neither may come twice.
            self._loaded[adapter.path] = asyncio.create_task(self._load(adapter, number=len(self._loaded) + 1))
        return await asyncio.shield(self._loaded[adapter.path])

    async def _load(self, adapter: Adapter, *, number: int) -> Any:
        from vllm.lora.request import LoRARequest
        from vllm.v1.engine.exceptions import EngineDeadError

        request = LoRARequest(str(adapter.path), number, str(adapter.path))
        try:
            await self._llm.add_lora(request)
        except EngineDeadError:
            raise
        except Exception as error:
            raise InputError(f"{adapter.path}: vLLM cannot load this adapter ({error}); does it fit the model and lora.r?") from error
        return request

    async def close(self) -> None:
        """Stop vLLM's processes."""
        self._guard.close()
        self._llm.shutdown()
        # Its destructor shuts down again, at interpreter exit after its own imports are gone.
        self._llm.shutdown = lambda timeout=None: None


def time_raw(settings: VllmSettings, rows: Sequence[tuple[Sequence[int], int]]) -> float:
    """Seconds of one LLM.generate over (prompt ids, tokens to draw), all at once: what a rollout can be measured against."""
    prepare_process(settings)
    from vllm import LLM, SamplingParams, TokensPrompt

    # An LLM call gives all requests one priority.
    llm = LLM(**engine_arguments(settings) | {"scheduling_policy": "fcfs"})
    prompts = [TokensPrompt(prompt_token_ids=list(prompt)) for prompt, _ in rows]
    sampling = [
        SamplingParams(temperature=1.0, seed=number, max_tokens=drawn, ignore_eos=True, logprobs=0, detokenize=False)
        for number, (_, drawn) in enumerate(rows)
    ]
    llm.generate(prompts[:1], sampling[:1], use_tqdm=False)
    begun = time.monotonic()
    llm.generate(prompts, sampling, use_tqdm=False)
    seconds = time.monotonic() - begun
    llm.llm_engine.engine_core.shutdown()
    return seconds


def _processes() -> list[multiprocessing.process.BaseProcess]:
    """vLLM's engine processes among the children of this one; their own workers end with them."""
    return [child for child in multiprocessing.active_children() if child.name.startswith("EngineCore")]


def _lora_rank(rank: int) -> int:
    """vLLM takes these ranks only; the next larger one serves."""
    return next(size for size in (8, 16, 32, 64, 128, 256, 320, 512) if size >= rank)


def prepare_process(settings: VllmSettings) -> None:
    """Environment variables that vLLM reads at import; what the user has set wins."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    # Read by vLLM's own processes, whose library warnings say nothing to a user.
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(max(1, round(settings.kv_cache_gib))))
    # Without it one core of a small machine is left idle for a server that does not run here.
    os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
