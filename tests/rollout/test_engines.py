import asyncio
import json
import shutil
from dataclasses import replace

import pytest

from env.errors import InputError
from env.protocol import Ending, Observation, StepResult
from rollout.engine import Adapter, FinishReason, Request, Sampling
from rollout.engines.transformers import TransformersEngine
from rollout.loop import Loop
from rollout.scheduler import EpisodeTask, run_episodes

OBSERVATION = Observation(system="Answer the question.", static="Question: What is the budget of project Amber Falcon?\n", dynamic="next")


class Asking:
    """The same question twice."""

    instance_id = "i"

    def __init__(self):
        self.ending, self.left, self.reward = None, 2, 0.0

    def observe(self):
        return OBSERVATION

    def step(self, response, *, truncated=False):
        self.left -= 1
        self.ending = None if self.left else Ending.ANSWERED
        return StepResult(kind=None, ids=(), ok=True, error=None, used=0, done=not self.left)

    def info(self):
        return {}

    def metrics(self):
        return {}


def ask(engine, loop, *, seed=1, temperature=1.0, max_tokens=12, adapter=None, name="r"):
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature)
    request = Request(request_id=name, prompt_ids=engine.encode(OBSERVATION), sampling=sampling, seed=seed, adapter=adapter)
    return loop.run(engine.generate(request))


@pytest.fixture(scope="module")
def reference(tiny_model_dir):
    """Log-probabilities of a completion by the plain model or with an adapter."""
    import torch
    from peft import PeftModel

    from train.adapters import load_model
    from train.config import ModelSettings

    def logprobs(prompt_ids, completion_ids, adapter=None):
        model = load_model(str(tiny_model_dir), ModelSettings())
        if adapter:
            model = PeftModel.from_pretrained(model, str(adapter))
        ids = torch.tensor([[*prompt_ids, *completion_ids]])
        with torch.no_grad():
            table = torch.log_softmax(model.eval()(ids).logits[0], -1)
        return [table[len(prompt_ids) - 1 + t, token].item() for t, token in enumerate(completion_ids)]

    return logprobs


def test_vllm_logprobs_are_those_of_the_model(vllm, reference):
    engine, loop = vllm
    completion = ask(engine, loop, name="base")
    assert len(completion.token_ids) == len(completion.logprobs) > 0
    assert completion.logprobs == pytest.approx(reference(engine.encode(OBSERVATION), completion.token_ids), abs=1e-4)


def test_each_adapter_version_is_served_under_its_own_weights(vllm, reference, adapters):
    engine, loop = vllm
    prompt = engine.encode(OBSERVATION)
    for version, path in enumerate(adapters, start=1):
        completion = ask(engine, loop, adapter=Adapter(version=version, path=path), name=f"v{version}")
        assert completion.logprobs == pytest.approx(reference(prompt, completion.token_ids, path), abs=1e-4)
        assert completion.logprobs != pytest.approx(reference(prompt, completion.token_ids), abs=1e-2)
    assert ask(engine, loop, name="base again").logprobs == pytest.approx(ask(engine, loop, name="base").logprobs, abs=1e-4)


def test_an_adapter_is_known_by_its_folder_whatever_its_version(vllm, reference, adapters, tmp_path):
    engine, loop = vllm
    prompt = engine.encode(OBSERVATION)
    for path in adapters:
        copy = shutil.copytree(path, tmp_path / path.name)
        completion = ask(engine, loop, adapter=Adapter(version=0, path=copy), name=f"copy of {path.name}")
        assert completion.logprobs == pytest.approx(reference(prompt, completion.token_ids, path), abs=1e-4)


def test_several_adapters_are_served_together(vllm, reference, adapters):
    engine, loop = vllm
    prompt = engine.encode(OBSERVATION)

    async def together():
        which = adapters * 4
        requests = [
            Request(
                request_id=f"together {n}",
                prompt_ids=prompt,
                sampling=Sampling(max_tokens=6),
                seed=n,
                adapter=Adapter(version=0, path=path),
            )
            for n, path in enumerate(which)
        ]
        return which, await asyncio.gather(*map(engine.generate, requests))

    which, completions = loop.run(together())
    for path, completion in zip(which, completions, strict=True):
        assert completion.logprobs == pytest.approx(reference(prompt, completion.token_ids, path), abs=1e-4)


def test_the_bare_model_and_adapters_are_served_together(vllm, reference, adapters):
    engine, loop = vllm
    prompt = engine.encode(OBSERVATION)
    which = [None, *adapters] * 5

    async def together():
        plain = Request(request_id="", prompt_ids=prompt, sampling=Sampling(max_tokens=6), seed=0)
        return await asyncio.gather(
            *(
                engine.generate(replace(plain, request_id=f"mixed {n}", seed=n, adapter=path and Adapter(version=0, path=path)))
                for n, path in enumerate(which)
            )
        )

    for path, completion in zip(which, loop.run(together()), strict=True):
        assert completion.logprobs == pytest.approx(reference(prompt, completion.token_ids, path), abs=1e-4)


def test_an_adapter_that_does_not_fit_is_refused_and_the_engine_goes_on(vllm, adapters, tmp_path):
    engine, loop = vllm
    shutil.copytree(adapters[0], tmp_path / "big")
    config = tmp_path / "big" / "adapter_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"r": 64}))
    with pytest.raises(InputError, match="cannot load this adapter"):
        ask(engine, loop, adapter=Adapter(version=99, path=tmp_path / "big"), name="big")
    assert ask(engine, loop, name="after").token_ids


def test_seeded_prompts_that_exceed_an_engine_step_together_are_served(vllm):
    engine, loop = vllm

    async def together():
        requests = [
            Request(request_id=f"long {n}", prompt_ids=[5 + (n + i * i) % 50 for i in range(900)], sampling=Sampling(max_tokens=2), seed=n)
            for n in range(16)
        ]
        return await asyncio.gather(*map(engine.generate, requests))

    assert [0 < len(completion.token_ids) <= 2 for completion in loop.run(together())] == [True] * 16


def test_a_cancelled_request_stops_and_the_engine_goes_on(vllm):
    engine, loop = vllm

    async def cancel():
        request = Request(request_id="c", prompt_ids=engine.encode(OBSERVATION), sampling=Sampling(max_tokens=500), seed=0)
        task = asyncio.create_task(engine.generate(request))
        await engine.generate(replace(request, request_id="d", sampling=Sampling(max_tokens=1)))
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert loop.run(cancel())
    assert ask(engine, loop, name="next").token_ids


def test_episodes_run_on_vllm_with_what_it_sampled(vllm, adapters):
    engine, loop = vllm
    adapter = Adapter(version=1, path=adapters[0])
    tasks = [EpisodeTask(instance_id="i", episode=g, make=Asking) for g in range(3)]
    sampling = Sampling(max_tokens=5)
    trajectories, stats = loop.run(run_episodes(engine, tasks, sampling=sampling, seed=3, in_flight=2, adapter=adapter))
    again, _ = loop.run(run_episodes(engine, tasks, sampling=sampling, seed=3, in_flight=3, adapter=adapter))
    steps = [step for t in trajectories for step in t.steps]
    assert [list(s.completion_ids) for s in steps] == [list(s.completion_ids) for t in again for s in t.steps]
    assert all(s.version == 1 and len(s.completion_ids) == len(s.logprobs) > 0 for s in steps)
    assert (stats.steps, stats.failed) == (6, 0)
    assert stats.completion_tokens == sum(len(s.completion_ids) for s in steps)


def test_a_seed_repeats_a_sample_and_another_seed_does_not(vllm):
    engine, loop = vllm
    one, again, other = (ask(engine, loop, seed=seed, name=f"s{k}").token_ids for k, seed in enumerate([5, 5, 6]))
    assert one == again != other


def test_finish_reasons_tell_a_cut_from_an_end(vllm):
    engine, loop = vllm
    cut = ask(engine, loop, max_tokens=1, name="cut")
    assert (cut.finish_reason, len(cut.token_ids)) == (FinishReason.LENGTH, 1)
    # A random model ends its turn by chance; one of these seeds draws the end-of-turn token.
    ended = next(c for seed in range(200) if (c := ask(engine, loop, seed=seed, max_tokens=40, name=f"end {seed}")).finish_reason == "stop")
    assert engine.decode(ended.token_ids[-1:]) == "" != engine.decode(ended.token_ids[:-1])


def test_a_repeated_prompt_comes_from_the_prefix_cache(vllm):
    engine, loop = vllm
    long = Observation(system="x " * 200, static="", dynamic="next")
    request = Request(request_id="long", prompt_ids=engine.encode(long), sampling=Sampling(max_tokens=1), seed=0)
    first = loop.run(engine.generate(request))
    second = loop.run(engine.generate(request))
    assert first.cached_tokens == 0
    assert second.cached_tokens >= len(request.prompt_ids) - 128


def test_both_engines_decode_to_the_same_greedy_text(vllm, tiny_model_dir):
    engine, loop = vllm
    ours = ask(engine, loop, temperature=0.0, name="greedy")
    with Loop() as other:
        theirs = ask(TransformersEngine(str(tiny_model_dir)), other, temperature=0.0)
    assert list(ours.token_ids) == list(theirs.token_ids)
    assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)


def test_transformers_serves_the_bare_model_between_adapters(tiny_model_dir, reference, adapters):
    engine = TransformersEngine(str(tiny_model_dir))
    prompt = engine.encode(OBSERVATION)
    with Loop() as loop:
        for path in (None, adapters[0], None, adapters[1], adapters[0]):
            adapter = Adapter(version=0, path=path) if path else None
            completion = ask(engine, loop, adapter=adapter)
            assert completion.logprobs == pytest.approx(reference(prompt, completion.token_ids, path), abs=1e-4)
