import asyncio
from dataclasses import dataclass

import pytest

from env.errors import EngineDied
from env.protocol import Ending, Observation, StepResult
from rollout.engine import Completion, FinishReason, Request, Sampling
from rollout.engines.scripted import ScriptedEngine
from rollout.loop import Loop
from rollout.records import to_row
from rollout.scheduler import EpisodeTask, play, run_episodes
from rollout.seeds import derive

SAMPLING = Sampling(max_tokens=20)


@dataclass
class Counting:
    """Ends after `length` steps; earns one for each step that said "yes"."""

    instance_id: str
    length: int
    ending: Ending | None = None
    steps: int = 0
    said: int = 0

    def observe(self):
        return Observation(system="count", static=f"{self.instance_id} ", dynamic=str(self.steps))

    def step(self, response, *, truncated=False):
        self.steps += 1
        self.said += response == "yes" and not truncated
        if self.steps == self.length:
            self.ending = Ending.ANSWERED
        return StepResult(kind=None, ids=(), ok=not truncated, error=None, used=0, done=self.ending is not None)

    @property
    def reward(self):
        return None if self.ending is None else float(self.said)

    def info(self):
        return {"split": "s"}

    def metrics(self):
        return {"correct": self.said > 0}


def tasks(*lengths):
    return [EpisodeTask(instance_id=f"i{n}", episode=0, make=lambda n=n, k=k: Counting(f"i{n}", k)) for n, k in enumerate(lengths)]


def run(engine, work, **options):
    return asyncio.run(run_episodes(engine, work, sampling=SAMPLING, seed=1, **{"in_flight": 8, **options}))


class Watching(ScriptedEngine):
    """Scripted, and notes the requests; one request waits at a gate."""

    def __init__(self, respond=lambda prompt, seed: "yes", held=None):
        super().__init__(respond)
        self.requests, self.held, self.open = [], held, 0
        self.most_open = 0

    async def generate(self, request):
        self.requests.append(request)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        if self.held and self.decode(request.prompt_ids).endswith(self.held):
            while len(self.requests) < 10:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.open -= 1
        return await super().generate(request)


def test_an_episode_advances_while_another_waits():
    engine = Watching(held="i0 0")
    finished = []
    run(engine, tasks(1, 9), on_finished=lambda t: finished.append(t.instance_id))
    assert finished == ["i1", "i0"]


def test_results_come_in_the_order_of_the_tasks_with_their_costs():
    trajectories, stats = run(Watching(), tasks(3, 1, 2))
    assert [(t.instance_id, len(t.steps), t.reward) for t in trajectories] == [("i0", 3, 3.0), ("i1", 1, 1.0), ("i2", 2, 2.0)]
    assert (stats.episodes, stats.steps, stats.failed, stats.completion_tokens) == (3, 6, 0, 18)
    assert stats.prompt_tokens == sum(len(s.prompt_ids) for t in trajectories for s in t.steps) == 6 * len("count\ni0 0")


def test_no_more_episodes_are_open_than_allowed():
    engine = Watching()
    run(engine, tasks(2, 2, 2, 2, 2), in_flight=2)
    assert engine.most_open == 2


def test_older_episodes_have_priority():
    engine = Watching()
    run(engine, tasks(2, 2))
    assert {(r.request_id.split("/")[0], r.priority) for r in engine.requests} == {("i0", 0), ("i1", 1)}


def test_every_request_has_its_own_seed_and_a_batch_can_be_repeated():
    first, second = Watching(), Watching()
    run(first, tasks(2, 2))
    run(second, tasks(2, 2))
    seeds = [r.seed for r in first.requests]
    assert len(set(seeds)) == 4
    assert sorted(seeds) == sorted(r.seed for r in second.requests)
    assert seeds[0] == derive(derive(1, "i0", 0), 0)


def test_a_cut_completion_is_a_truncated_step():
    trajectories, _ = run(ScriptedEngine(lambda prompt, seed: "y" * 21), tasks(1))
    (step,) = trajectories[0].steps
    assert (step.finish_reason, len(step.completion_ids), step.result.ok) == (FinishReason.LENGTH, 20, False)


class Failing(ScriptedEngine):
    """Fails the first `times` requests for instance i1."""

    def __init__(self, times, error):
        super().__init__(lambda prompt, seed: "yes")
        self.left, self.error = times, error

    async def generate(self, request):
        if request.request_id.startswith("i1/") and self.left:
            self.left -= 1
            raise self.error
        return await super().generate(request)


def test_a_failed_request_is_tried_again():
    trajectories, stats = run(Failing(2, RuntimeError("lost")), tasks(1, 1))
    assert [t.error for t in trajectories] == [None, None]
    assert stats.failed == 0


def test_an_episode_that_cannot_go_on_is_recorded_and_the_batch_goes_on():
    trajectories, stats = run(Failing(3, RuntimeError("lost")), tasks(1, 2, 1))
    assert [t.error for t in trajectories] == [None, "RuntimeError: lost", None]
    assert (trajectories[1].ending, trajectories[1].reward, stats.failed) == (None, 0.0, 1)


def test_a_dead_engine_ends_the_run_and_what_was_finished_is_kept():
    kept = []
    work = run_episodes(
        Failing(1, EngineDied("gone")),
        tasks(1, 1),
        sampling=SAMPLING,
        seed=1,
        in_flight=1,
        on_finished=lambda t: kept.append(t.instance_id),
    )
    with Loop() as loop, pytest.raises(EngineDied, match="gone"):
        loop.run(work)
    assert kept == ["i0"]


def test_a_bug_of_an_environment_is_not_recorded_as_data():
    class Broken(Counting):
        def step(self, response, *, truncated=False):
            raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        run(Watching(), [EpisodeTask(instance_id="i0", episode=0, make=lambda: Broken("i0", 2))])


def test_a_cancelled_batch_stops_its_episodes():
    engine = Watching(held="i0 0")
    finished = []

    async def cancel():
        work = run_episodes(engine, tasks(1), sampling=SAMPLING, seed=1, in_flight=1, on_finished=finished.append)
        batch = asyncio.create_task(work)
        while not engine.requests:
            await asyncio.sleep(0)
        batch.cancel()
        await asyncio.wait([batch])
        return batch.cancelled(), len(asyncio.all_tasks())

    assert asyncio.run(cancel()) == (True, 1)
    assert finished == []


def test_a_trajectory_row_shows_facts_of_instance_and_episode_beside_its_steps():
    trajectory = play(Counting("i7", 2), lambda episode: "yes")
    row = to_row(trajectory)
    assert {k: row[k] for k in ("instance_id", "split", "reward", "correct", "ending", "failure")} == {
        "instance_id": "i7",
        "split": "s",
        "reward": 2.0,
        "correct": True,
        "ending": "answered",
        "failure": None,
    }
    assert [step["response"] for step in row["steps"]] == ["yes", "yes"]


def test_token_ids_are_written_only_when_asked_for():
    trajectories, _ = run(ScriptedEngine(lambda prompt, seed: "yes"), tasks(1))
    assert to_row(trajectories[0], tokens=True)["steps"][0]["completion_ids"] == list(b"yes")
    assert "completion_ids" not in to_row(trajectories[0])["steps"][0]


def test_seeds_depend_on_every_part():
    assert len({derive(1, "a", 2), derive(1, "a", 3), derive(2, "a", 2), derive(1, "b", 2)}) == 4
    assert 0 <= derive("x") < 2**31


def test_a_completion_has_one_logprob_for_each_token():
    completion = asyncio.run(
        ScriptedEngine(lambda prompt, seed: "é").generate(Request(request_id="r", prompt_ids=[65], sampling=SAMPLING, seed=0))
    )
    assert completion == Completion(token_ids=list("é".encode()), logprobs=[0.0, 0.0], finish_reason=FinishReason.STOP)
