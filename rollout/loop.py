"""An event loop in a thread of its own, so that synchronous code can use an asynchronous engine again and again.

vLLM's AsyncLLM belongs to the loop it was started in; `asyncio.run` would make a new one for every call.
"""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Loop:
    """A running loop; leaving the block stops it."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine loop", daemon=True)
        self._thread.start()
        return self

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Result of a coroutine. Ctrl-C cancels it and is raised once it has stopped."""
        tasks: list[asyncio.Task[T]] = []
        stopped = threading.Event()

        def begin() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda task: stopped.set())

        try:
            self._loop.call_soon_threadsafe(begin)
            stopped.wait()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # begin has run by then: calls keep their order
            stopped.wait()
            raise
        return tasks[0].result()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
