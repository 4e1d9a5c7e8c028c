import pytest

from env import list_environments, make
from env.contract import violations
from env.protocol import Ending, Observation, StepResult

SCRIPTS = {
    "garbage": ("", "nothing that is an action"),
    "actions": ("ACTION: READ 0", "ACTION: COMPRESS 0 :: kept", "ACTION: READ 1", "ACTION: DROP 1", "ACTION: ANSWER 1"),
    "ceiling": ("ACTION: READ 0", "ACTION: READ 1"),
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("name", list_environments())
def test_every_environment_keeps_to_the_contract(name, script):
    assert violations(lambda: make(name), SCRIPTS[script]) == []


class Countdown:
    """An episode of three steps, with one fault or none."""

    instance_id = "countdown"
    built = 0

    def __init__(self, fault):
        Countdown.built += 1
        self.fault, self.number = fault, Countdown.built
        self.ending, self.left = None, 3

    def observe(self):
        assert self.ending is None or self.fault == "observes after the end"
        if self.fault == "looking costs a step" and self.left > 1:
            self.left -= 1
        if self.fault == "other prompt each time":
            self.number += 1
        return Observation(system="", static="", dynamic=str(self.number if "prompt" in self.fault else 0))

    def step(self, response, *, truncated=False):
        assert self.ending is None or self.fault == "steps after the end"
        self.left -= self.fault != "never ends"
        self.ending = None if self.left > 0 else Ending.ANSWERED
        used = self.number if self.fault == "differs" else 0
        done = False if self.fault == "done is wrong" else self.ending is not None
        return StepResult(kind=None, ids=(), ok=True, error=None, used=used, done=done)

    @property
    def reward(self):
        if self.ending is None:
            return 0.5 if self.fault == "early reward" else None
        return float("inf") if self.fault == "no number" else 1.0

    def info(self):
        return {"id": 1, "correct": 1} if self.fault == "shared name" else {"id": 1}

    def metrics(self):
        return {"correct": True, "seen": {1, 2} if self.fault == "a set" else float("inf") if self.fault == "infinite" else None}


class Countdowns:
    made = 0

    def __init__(self, fault):
        self.fault = fault

    def __len__(self):
        return 1

    def __getitem__(self, index):
        Countdowns.made += self.fault == "other instance"
        return Countdowns.made

    def __iter__(self):
        yield self[0]

    def episode(self, instance):
        return Countdown(self.fault)


@pytest.mark.parametrize(
    ("fault", "complaints"),
    [
        ("", []),
        ("other instance", ["the first instance is not the same each time"]),
        ("differs", ["the same responses do not make the same episode", "an episode goes another way when observe() is called"]),
        ("looking costs a step", ["an episode goes another way when observe() is called"]),
        ("other prompt each time", ["the same responses do not make the same episode", "observe() shows something else the second time"]),
        ("never ends", ["an episode goes on after 1000 steps"]),
        ("steps after the end", ["step() after the end is not refused with an AssertionError"]),
        ("observes after the end", ["observe() after the end is not refused with an AssertionError"]),
        ("done is wrong", ["a step says done=False while the ending is answered"]),
        ("early reward", ["a running episode has the reward 0.5"]),
        ("no number", ["an ended episode has the reward inf, expected a finite float"]),
        ("a set", ["metrics() holds more than JSON values: {'correct': True, 'seen': {1, 2}}"] * 2),
        ("infinite", ["metrics() holds more than JSON values: {'correct': True, 'seen': inf}"] * 2),
        ("shared name", ["info() and metrics() share the names ['correct']: both go into one row"] * 2),
    ],
)
def test_each_breach_is_named(fault, complaints):
    assert violations(lambda: Countdowns(fault)) == complaints
