"""A pointer of the library that is freed once, when no call uses it any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Handle:
    """Counts the calls on a pointer. `closing` asks long calls to end."""

    def __init__(self, pointer: Any, name: str) -> None:
        self._pointer = pointer
        self._name = name
        self._calls = 0
        self._condition = threading.Condition()
        self.closing = False

    @contextmanager
    def use(self) -> Iterator[Any]:
        """The pointer, for the length of one call. ValueError: it was closed."""
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
        """Refuse new calls, wait for those that run, and return the pointer; None: closed before."""
        with self._condition:
            if self.closing:
                return None
            self.closing = True
            self._condition.wait_for(lambda: self._calls == 0)
            pointer, self._pointer = self._pointer, None
            return pointer
