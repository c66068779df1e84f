"""After a fork: a child cannot use its parent's stores, ends in time, and may open stores itself."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import traceback
import unittest
from collections.abc import Callable

import spillway
from spillway._store import _close_all
from store_case import SERVER, StoreCase, server_uri, small_feed

_SECONDS = 60


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child, and return its exit code.

    The child closes stores as at the end of a program. It runs no other function of atexit: those
    of the parent delete the test's folder.
    """
    sys.stdout.flush()
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(_SECONDS)  # a child that hangs ends by this signal
    code = 1
    try:
        work()
        gc.collect()
        _close_all()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
    raise AssertionError("not reached")


def open_and_append(place: str, number: int) -> int:
    """What a worker does: a store of its own."""
    with spillway.open(place) as store:
        return store.array("feed").append("worker", number).count


class ForkTest(StoreCase):
    def refuses(self) -> None:
        with self.assertRaisesRegex(ValueError, "before a fork; open the store again"):
            self.feed.append("ada", 2)
        with self.assertRaisesRegex(ValueError, f"process {os.getppid()} opened the store"):
            self.store.definitions()

    def test_a_child_cannot_use_the_store(self) -> None:
        self.feed.append("ada", 1)
        self.assertEqual(in_child(self.refuses), 0)
        self.feed.append("ada", 3)
        self.assertEqual([element.value for element in self.feed.iterate("ada")], [1, 3])

    def test_a_child_that_uses_nothing_ends(self) -> None:
        self.feed.append("ada", 1)
        self.assertEqual(in_child(lambda: None), 0)

    def test_a_child_closes_and_loses_the_store(self) -> None:
        self.feed.append("ada", 1)

        def lose() -> None:
            self.feed.close()
            self.store.close()
            del self.feed, self.store
            gc.collect()

        self.assertEqual(in_child(lose), 0)
        self.assertEqual(self.feed.count("ada").count, 1)

    def test_the_end_of_a_walk_in_a_child(self) -> None:
        self.feed.extend("ada", list(range(5000)))
        walk = self.feed.walk()
        next(walk)

        def go_on() -> None:
            with self.assertRaises(ValueError):
                for _ in walk:
                    pass

        self.assertEqual(in_child(go_on), 0)
        self.assertEqual(sum(1 for _ in walk), 4999)


@unittest.skipUnless(SERVER, "needs SPILLWAY_TEST_URI")
class ForkOnServerTest(unittest.TestCase):
    def test_workers_open_the_store(self) -> None:
        place = server_uri()
        with spillway.open(place) as store:
            store.define(small_feed())
            feed = store.array("feed")
            feed.append("worker", -1)
            with multiprocessing.get_context("fork").Pool(3) as pool:
                done = pool.starmap_async(open_and_append, [(place, i) for i in range(30)])
                self.assertEqual(sum(done.get(timeout=_SECONDS)), 30)
            numbers = sorted(element.value for element in feed.iterate("worker"))
            self.assertEqual(numbers, list(range(-1, 30)))


if __name__ == "__main__":
    unittest.main()
