"""A pointer of the library that is freed once, when no call uses it any more."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_forks = 0  # that lie between the start of the program and this process


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class Handle:
    """Counts the calls on a pointer. `closing` asks long calls to end.

    A process has no threads of its parent, and shares its files and sockets. So a forked child can
    neither use nor close what the parent opened: its handles refuse calls and leave the pointer.
    """

    def __init__(self, pointer: Any, name: str) -> None:
        self._pointer = pointer
        self._name = name
        self._calls = 0
        self._forks = _forks
        self._process = os.getpid()
        self._condition = threading.Condition()
        self.closing = False

    @property
    def inherited(self) -> bool:
        """Did a parent open it, before a fork?"""
        return self._forks != _forks

    @contextmanager
    def use(self) -> Iterator[Any]:
        """The pointer, for the length of one call. ValueError: it was closed, or is inherited."""
        if self.inherited:  # a thread of the parent may have held the lock at the fork
            raise ValueError(
                f"process {self._process} opened the {self._name} before a fork; "
                "open the store again in this process")
        with self._condition:
            if self.closing:
                raise ValueError(f"the {self._name} is closed")
            self._calls += 1
        try:
            yield self._pointer
        finally:
            with self._condition:
                self._calls -= 1
                self._condition.notify_all()

    def close(self) -> Any:
        """Refuse new calls, wait for those that run, and return the pointer.

        None: it was closed before, or is inherited.
        """
        if self.inherited:
            return None
        with self._condition:
            if self.closing:
                return None
            self.closing = True
            self._condition.wait_for(lambda: self._calls == 0)
            pointer, self._pointer = self._pointer, None
            return pointer
