"""An engine whose answers are a function of the prompt: no model, real code.

Runs the scheduler in tests and replays recorded responses. Its token ids are UTF-8 bytes.
"""

from collections.abc import Callable, Sequence

from env.protocol import Observation
from rollout.engine import Completion, FinishReason, Request


class ScriptedEngine:
    """Implements rollout.engine.Engine by `respond(prompt text, seed) -> text`."""

    gives_ids = True

    def __init__(self, respond: Callable[[str, int], str]) -> None:
        self._respond = respond

    def encode(self, observation: Observation) -> list[int]:
        """Bytes of the messages, one after the other."""
        return list("\n".join(message["content"] for message in observation.messages).encode())

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of bytes; a cut character becomes the replacement mark."""
        return bytes(token_ids).decode(errors="replace")

    async def generate(self, request: Request) -> Completion:
        """The scripted answer, cut at max_tokens bytes; every log-probability is 0."""
        answer = list(self._respond(self.decode(request.prompt_ids), request.seed).encode())
        kept = answer[: request.sampling.max_tokens]
        reason = FinishReason.STOP if len(kept) == len(answer) else FinishReason.LENGTH
        return Completion(token_ids=kept, logprobs=[0.0] * len(kept), finish_reason=reason)

    async def close(self) -> None:
        """Nothing to free."""
