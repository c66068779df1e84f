"""Deadlines: a call ends in time, whatever the server, the network or a disk do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._native import lib


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Give the calls of this thread on arrays a deadline, from now on.

        with spillway.deadline(0.2):
            feed.append("ada", element)

    A call that the deadline ends raises TimedOutError: nothing was changed, and nothing will be. Or
    it raises UnknownOutcomeError: the change may have been made. An earlier deadline of this thread
    stays. Opening and closing a store, definitions and backups ignore deadlines. So do Array.owners
    and Array.walk, which read in a thread of their own; Array.iterate reads in this one. Cost: each
    store operation is handed to another thread.
    """
    outer = lib.spill_deadline_begin(max(0, int(seconds * 1000)))
    try:
        yield
    finally:
        lib.spill_deadline_end(outer)
