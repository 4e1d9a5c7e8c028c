"""The state machine of one episode.

Order of checks within a step:

    1. the response is no action, or was truncated     -> invalid: costs the step, changes nothing      (parse)
    2. READ of a chunk that does not exist or is held  -> refused                 (unknown_chunk, already_held)
       COMPRESS or DROP of something not held          -> refused                                    (not_held)
    3. the action would push usage above the ceiling   -> the episode ends, nothing loads             (ceiling)
    4. the action applies; ANSWER ends the episode
    5. the steps used reach the budget                 -> the episode ends

`used` is the sum of the tokens of what is held, after every step.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from env.navigator import prompt
from env.navigator.actions import Action, ParseError, Verb, parse
from env.navigator.counters import counter_for
from env.navigator.instance import Instance
from env.navigator.prompt import Item, Ledger
from env.navigator.reward import Graded, normal
from env.navigator.settings import Rules, rules_from
from env.navigator.tokens import has_words
from env.protocol import Ending, Observation, StepResult


class NavigatorEpisode(Graded):
    """One run of a policy through one instance; implements env.protocol.Episode."""

    def __init__(self, instance: Instance, rules: Rules | None = None, static: str | None = None) -> None:
        """`rules` default to those recorded in the instance, `static` to its own question and map."""
        self.instance = instance
        self.instance_id = instance.id
        self.rules = rules or rules_from(instance.env)
        self.counter = counter_for(self.rules)
        """Charges summaries; chunks cost their recorded tokens."""
        self.ending = None
        self.answer = None
        self.steps_used = 0
        self.used = 0
        self.budget = self.rules.budget(instance.n_hops)
        self.read_ids: list[str] = []
        """Chunks read so far, each once."""
        self._held: dict[str, Item] = {}
        self._dropped: list[str] = []
        self._compressed: list[str] = []
        self._last = ""
        self._counts = dict.fromkeys(Verb, 0)
        self._invalid = 0
        self._summaries = 0
        self._kept: list[bool] = []
        self._system = prompt.system_text(self.rules)
        self._static = static if static is not None else prompt.static_text(instance, self.rules)

    @property
    def held(self) -> Mapping[str, Item]:
        """What is held, by id, in the order it was taken in."""
        return MappingProxyType(self._held)

    def observe(self) -> Observation:
        """The prompt of the next step."""
        assert self.ending is None, "the episode has ended"
        ledger = Ledger(
            read=self.read_ids,
            dropped=self._dropped,
            compressed=self._compressed,
            last=self._last,
            steps_used=self.steps_used,
            budget=self.budget,
            used=self.used,
            ceiling=self.rules.ceiling,
        )
        return Observation(system=self._system, static=self._static, dynamic=prompt.dynamic_text(ledger, self._held, self.rules))

    def step(self, response: str, *, truncated: bool = False) -> StepResult:
        """Carry out a response."""
        assert self.ending is None, "the episode has ended"
        self.steps_used += 1
        try:
            if truncated:
                raise ParseError("truncated")
            action = parse(response)
        except ParseError as reason:
            self._invalid += 1
            self._last = f"invalid: {reason}"
            return self._result(None, (), "parse")
        error = self._refusal(action) or self._apply(action)
        ids = " ".join(action.ids)
        if error is None:
            self._counts[action.verb] += 1
            self._last = f"{action.verb} {ids} ok"
        else:
            self._last = f"{action.verb} {ids} refused: {_REASONS[error]}"
        return self._result(action.verb.value, action.ids, error)

    def _refusal(self, action: Action) -> str | None:
        """Why an action that parses cannot be carried out."""
        if action.verb is Verb.READ:
            # An id longer than the number of chunks is no number worth converting.
            chunk = action.ids[0]
            if len(chunk) > 9 or int(chunk) >= len(self.instance.chunks):
                return "unknown_chunk"
            return "already_held" if chunk in self._held else None
        return "not_held" if any(name not in self._held for name in action.ids) else None

    def _apply(self, action: Action) -> str | None:
        """Carry an action out, or end the episode when it would exceed the ceiling."""
        if action.verb is Verb.ANSWER:
            self.answer, self.ending = action.text, Ending.ANSWERED
            return None
        added = self._added(action)
        freed = 0 if action.verb is Verb.READ else sum(self._held[name].tokens for name in action.ids)
        after = self.used - freed + sum(item.tokens for item in added.values())
        if after > self.rules.ceiling:
            self.ending = Ending.CEILING_EXCEEDED
            return "ceiling"
        if action.verb is Verb.READ:
            _note(self.read_ids, action.ids)
        else:
            self._judge_retention(action, added)
            for name in action.ids:
                del self._held[name]
            _note(self._dropped if action.verb is Verb.DROP else self._compressed, action.ids)
        self._summaries += action.verb is Verb.COMPRESS
        self._held |= added
        self.used = after
        return None

    def _added(self, action: Action) -> dict[str, Item]:
        """What an action would take in."""
        if action.verb is Verb.READ:
            chunk = self.instance.chunks[int(action.ids[0])]
            return {action.ids[0]: Item(text=chunk.text, tokens=chunk.tokens)}
        if action.verb is Verb.COMPRESS:
            summary = self.counter.cut(action.text, self.rules.summary_cap)
            return {f"S{self._summaries + 1}": Item(text=summary, tokens=self.counter.count(summary))}
        return {}

    def _judge_retention(self, action: Action, added: Mapping[str, Item]) -> None:
        """Note for each bridge in the compressed items whether the summary keeps it.

        A bridge is in its own chunk, and in a summary that kept it until the chunk it leads to has been read: past
        that a perfect policy lets it go.
        """
        if action.verb is not Verb.COMPRESS:
            return
        summary = next(iter(added.values())).text
        older = [self._held[name].text for name in action.ids if name.startswith("S")]
        for bridge, following in pairwise(self.instance.evidence):
            needed = str(following.chunk_idx) not in self.read_ids
            if str(bridge.chunk_idx) in action.ids or (needed and any(has_words(text, bridge.value) for text in older)):
                self._kept.append(has_words(summary, bridge.value))

    def _result(self, kind: str | None, ids: tuple[str, ...], error: str | None) -> StepResult:
        if self.ending is None and self.steps_used >= self.budget:
            self.ending = Ending.BUDGET_EXHAUSTED
        return StepResult(kind=kind, ids=ids, ok=error is None, error=error, used=self.used, done=self.ending is not None)

    def info(self) -> dict[str, Any]:
        """Facts of the instance."""
        instance = self.instance
        return {
            "split": instance.split,
            "n_hops": instance.n_hops,
            "min_steps": instance.min_steps,
            "doc_tokens_target": instance.doc_tokens_target,
        }

    def metrics(self) -> dict[str, Any]:
        """Facts of the episode; fact_retention is the share of compressed bridges whose summary keeps them."""
        return {
            "correct": self.correct,
            "answer": self.answer,
            "steps_used": self.steps_used,
            "steps_over_min": self.steps_used - self.instance.min_steps,
            "n_reads": self._counts[Verb.READ],
            "n_compress": self._counts[Verb.COMPRESS],
            "n_drop": self._counts[Verb.DROP],
            "n_invalid": self._invalid,
            "answered": self.ending is Ending.ANSWERED,
            "ceiling_exceeded": self.ending is Ending.CEILING_EXCEEDED,
            "budget_exhausted": self.ending is Ending.BUDGET_EXHAUSTED,
            "distractor_capture": self._capture(),
            "fact_retention": sum(self._kept) / len(self._kept) if self._kept else None,
            "compressed": self._counts[Verb.COMPRESS] > 0,
        }

    def _capture(self) -> str | None:
        """Kind of the known distractor that a wrong answer fell for."""
        if self.answer is None or self.correct:
            return None
        given = normal(self.answer)
        wrong = (d for d in self.instance.distractors if d.wrong_answer is not None and normal(d.wrong_answer) == given)
        return next((d.kind for d in wrong), None)


_REASONS = {"unknown_chunk": "no such chunk", "already_held": "already held", "not_held": "not held", "ceiling": "over the ceiling"}


def _note(log: list[str], ids: tuple[str, ...]) -> None:
    log.extend(name for name in ids if name not in log)
