"""Ends child processes when this process is gone, however it went: kill, kill -9, out of memory.

An engine in a process of its own waits for work for ever when its parent dies without closing it, and keeps its
memory. The guard is a shell that reads a pipe which only this process holds open.
"""

import subprocess
from collections.abc import Sequence


class Guard:
    """Watches over process ids until it is closed."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._shell = subprocess.Popen(
            ["sh", "-c", 'read _; kill "$@"; sleep 5; kill -9 "$@"', "guard", *map(str, pids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the others
        )

    def close(self) -> None:
        """The children end in their own way from here on; calling it twice is fine."""
        self._shell.kill()
        self._shell.communicate()
