"""Iterate over what the library visits by callback: a thread runs the walk, a queue bounds it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ._handle import Handle
from ._native import ffi
from ._values import pack

_AHEAD = 1000  # visited values that wait for the caller
_logger = logging.getLogger("spillway")
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


class Walk:
    """One walk. `visit` runs in its thread; the caller iterates over the results."""

    def __init__(self, handle: Handle, run: Callable[[Any], None]) -> None:
        """`run` walks with the given context, and raises an exception if the walk fails."""
        self._handle = handle
        self._run = run
        self._queue: queue.Queue[Any] = queue.Queue(_AHEAD)
        self._ended = threading.Event()

    def visit(self, item: Any) -> bool:
        """Give an item to the caller. False: nobody waits for it."""
        while not (self._ended.is_set() or self._handle.closing):
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def _work(self) -> None:
        context = ffi.new_handle(self)
        outcome: BaseException | None = None
        try:
            self._run(context)
        except BaseException as error:  # goes to the thread that iterates
            outcome = error
        self.visit(_End(outcome))

    def items(self) -> Iterator[Any]:
        thread = threading.Thread(target=self._work, name="spillway-walk", daemon=True)
        thread.start()
        try:
            while True:
                item = self._next(thread)
                if isinstance(item, _End):
                    if item.error is not None:
                        raise item.error
                    return
                yield item
        finally:
            self._ended.set()
            thread.join()

    def _next(self, thread: threading.Thread) -> Any:
        while True:
            try:
                return self._queue.get(timeout=0.1)
            except queue.Empty:
                if not thread.is_alive() and self._queue.empty():
                    raise ValueError("the array was closed during a walk") from None


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


@ffi.def_extern()  # type: ignore[untyped-decorator]
def spill_python_owner(context: Any, owner: Any) -> bool:
    walk: Walk = ffi.from_handle(context)
    return walk.visit(pack(owner))


@ffi.def_extern()  # type: ignore[untyped-decorator]
def spill_python_element(context: Any, owner: Any, element: Any) -> bool:
    walk: Walk = ffi.from_handle(context)
    return walk.visit((pack(owner), element.seq, pack(element.value)))


@ffi.def_extern()  # type: ignore[untyped-decorator]
def spill_python_log(context: Any, level: int, message: Any) -> None:
    _logger.log(_LEVELS[level], "%s", ffi.string(message).decode(errors="replace"))
