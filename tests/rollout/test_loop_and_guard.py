import asyncio
import os
import select
import signal
import subprocess
import sys
import threading

import pytest

from rollout.guard import Guard
from rollout.loop import Loop


def test_calls_share_one_loop():
    async def here():
        return asyncio.get_running_loop()

    with Loop() as loop:
        assert loop.run(here()) is loop.run(here())


def test_a_failure_comes_out_as_it_is():
    async def fail():
        raise RuntimeError("no")

    with Loop() as loop, pytest.raises(RuntimeError, match="^no$"):
        loop.run(fail())


def test_ctrl_c_is_raised_once_the_work_has_stopped():
    happened = []

    async def work():
        try:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            happened.append("cleaned up")

    with Loop() as loop:
        with pytest.raises(KeyboardInterrupt):
            loop.run(work())
        assert happened == ["cleaned up"]
        assert loop.run(asyncio.sleep(0, "still runs")) == "still runs"


PARENT = """
import subprocess, sys
from rollout.guard import Guard
child = subprocess.Popen(["sleep", "600"])
guard = Guard([child.pid])
print(child.pid, flush=True)
sys.stdin.read()
"""


def wait_for_end(pid):
    """Block until a process that may be no child of ours has ended; fail after a minute."""
    handle = os.pidfd_open(pid)
    ready, _, _ = select.select([handle], [], [], 60)
    os.close(handle)
    assert ready


def test_a_guarded_child_ends_with_a_parent_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    wait_for_end(child)


def test_a_closed_guard_leaves_the_child_alone():
    child = subprocess.Popen(["sleep", "600"])
    guard = Guard([child.pid])
    guard.close()
    guard.close()
    assert child.poll() is None
    child.kill()
    child.wait()
