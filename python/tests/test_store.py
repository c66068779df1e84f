"""Stores and definitions: errors, closing, threads, backups, and the death of the process."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import spillway
from spillway._errors import CLASSES
from spillway._native import ffi, lib
from store_case import StoreCase, small_feed

WRITER = """
import sys, spillway
store = spillway.open(sys.argv[1], durability="log")
feed = store.array("feed")
number = 0
while True:
    print(feed.append("ada", number).first, flush=True)
    number += 1
"""


class StoreTest(StoreCase):
    def test_definitions(self) -> None:
        self.assertEqual([d.name for d in self.store.definitions()], ["feed"])
        self.assertEqual(self.feed.definition, small_feed())
        self.assertIn("feed-recent", spillway.presets())
        with self.assertRaisesRegex(spillway.NotFoundError, "feed-recent"):
            spillway.Definition.preset("no-such", "feed")
        with self.assertRaisesRegex(spillway.InvalidError, "threshold"):
            small_feed().replace(threshold=-1)
        with self.assertRaisesRegex(spillway.InvalidError, "treshold"):
            small_feed().replace(treshold=1)
        with self.assertRaisesRegex(spillway.InvalidError, "outlier"):
            small_feed().replace(layout="no-such")
        reference = small_feed().replace(layout="reference")
        self.assertEqual(reference.to_document()["layout"], "reference")
        self.assertEqual(spillway.Definition.from_document(reference.to_document()), reference)

    def test_a_definition_never_changes(self) -> None:
        definition = small_feed()
        bounds = (definition.layout, definition.threshold, definition.page_capacity)
        self.assertEqual(bounds, ("outlier", 10, 10))
        for name in ("threshold", "treshold", "name"):
            with self.assertRaises(AttributeError):
                setattr(definition, name, 7)
        changed = definition.replace(threshold=7, head_bytes_max=100_000, page_bytes_max=90_000)
        self.assertEqual(changed.threshold, 7)
        self.assertEqual((changed.head_bytes_max, changed.page_bytes_max), (100_000, 90_000))
        self.assertEqual(definition.threshold, 10)

    def test_names_are_not_cut_at_a_nul(self) -> None:
        calls: list[Callable[[], object]] = [
            lambda: spillway.open(self.uri() + "\0b"),
            lambda: self.store.array("feed\0b"),
            lambda: self.store.drop("feed\0b"),
            lambda: self.store.backup(self.uri() + "\0b"),
            lambda: spillway.Definition.preset("feed-recent", "feed\0b"),
            lambda: spillway.Definition.preset("feed-recent\0b", "feed"),
            lambda: spillway.scan(self.uri() + "\0b"),
            lambda: spillway.scan(self.uri(), format="bson\0b"),
            lambda: spillway.scan(self.uri(), collections=["feed\0b"]),
        ]
        for call in calls:
            with self.assertRaisesRegex(ValueError, "NUL"):
                call()

    def test_names_of_folders(self) -> None:
        for name in (os.path.join(self.folder, "a").encode(), pathlib.Path(self.folder, "b")):
            with spillway.open(name) as store:
                store.define(small_feed())
            with spillway.open(name, must_exist=True) as store:
                self.assertEqual([d.name for d in store.definitions()], ["feed"])

    def test_a_lost_store_is_closed_with_a_warning(self) -> None:
        place = os.path.join(self.folder, "lost")

        def lose(cycle: bool) -> None:
            store = spillway.open(place)
            store.define(small_feed())
            feed = store.array("feed")
            feed.append("ada", 1)
            if cycle:
                feed.itself = feed  # type: ignore[attr-defined]

        for number, cycle in enumerate((False, True)):
            with self.assertWarnsRegex(ResourceWarning, "was not closed"):
                lose(cycle)
                gc.collect()
            with spillway.open(place) as store:
                self.assertEqual(store.array("feed").count("ada").count, number + 1)

    def test_every_code_has_a_class(self) -> None:
        names: list[str] = []
        while len(names) < 100:
            name = ffi.string(lib.spill_code_name(len(names) + 1)).decode()
            if name not in CLASSES:
                break
            names.append(name)
        self.assertEqual(names, list(CLASSES))
        self.assertEqual(name, "UNDEFINED")

    def test_bounds_of_an_array_with_elements(self) -> None:
        self.feed.extend("ada", list(range(30)))
        self.store.define(small_feed().replace(threshold=20))
        with self.assertRaisesRegex(spillway.RefusedError, "array"):
            self.store.define(small_feed().replace(array="other"))

    def test_one_writer_and_readers(self) -> None:
        self.feed.append("ada", 1)
        with self.assertRaises(spillway.BusyError) as caught:
            in_other_process = (
                "import sys, spillway\n"
                "try: spillway.open(sys.argv[1])\n"
                "except spillway.BusyError as error: sys.exit(9 if error.retryable else 1)")
            self.assertEqual(
                subprocess.run([sys.executable, "-c", in_other_process, self.uri()]).returncode, 9)
            spillway.open(self.uri())
        self.assertTrue(caught.exception.retryable)
        with spillway.open(self.uri(), read_only=True) as reader:
            feed = reader.array("feed")
            self.assertEqual(feed.count("ada").count, 1)
            with self.assertRaises(spillway.ReadOnlyError):
                feed.append("ada", 2)

    def test_closed(self) -> None:
        self.store.close()
        self.store.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            self.feed.count("ada")
        with self.assertRaisesRegex(ValueError, "closed"):
            self.store.definitions()

    def test_close_ends_a_walk(self) -> None:
        self.feed.extend("ada", list(range(5000)))
        walk = self.feed.walk()
        next(walk)
        self.store.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            for _ in walk:
                pass

    def test_a_walk_may_be_left(self) -> None:
        self.feed.extend("ada", list(range(5000)))
        for _, element in self.feed.walk():
            if element.seq == 10:
                break
        names = [thread.name for thread in threading.enumerate()]
        self.assertNotIn("spillway-walk", names)

    def test_threads(self) -> None:
        def work(name: int) -> None:
            for number in range(200):
                self.feed.append("all", [name, number])

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        read = [tuple(element.value) for element in self.feed.iterate("all")]
        self.assertEqual(len(read), 1600)
        for name in range(8):
            numbers = [number for writer, number in read if writer == name]
            self.assertEqual(numbers, list(range(200)))

    def test_a_call_lets_other_threads_run(self) -> None:
        counted = [0]
        done = threading.Event()

        def count() -> None:
            while not done.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        self.feed.extend("ada", [b"x" * 1000] * 20000)
        done.set()
        thread.join()
        self.assertGreater(counted[0], 0)

    def test_backup(self) -> None:
        self.feed.extend("ada", list(range(30)))
        copy = os.path.join(self.folder, "copy")
        self.store.backup(copy)
        with spillway.open(copy, read_only=True) as store:
            self.assertEqual(store.array("feed").count("ada").count, 30)
        with self.assertRaises(spillway.RefusedError):
            self.store.backup(copy)

    def test_drop(self) -> None:
        self.feed.append("ada", 1)
        self.feed.close()
        self.store.drop("feed")
        self.assertEqual(self.store.definitions(), [])

    def test_a_killed_process_loses_nothing(self) -> None:
        self.store.close()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, self.uri()], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        for _ in range(500):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        acknowledged = 500 + sum(1 for line in writer.stdout if line.endswith("\n"))
        writer.stdout.close()
        writer.wait()
        with spillway.open(self.uri()) as store:
            feed = store.array("feed")
            values = [element.value for element in feed.iterate("ada")]
            self.assertGreaterEqual(len(values), acknowledged)
            self.assertEqual(values, list(range(len(values))))

    def test_a_store_left_open_ends_with_the_process(self) -> None:
        script = (
            "import sys, spillway\n"
            "store = spillway.open(sys.argv[1])\n"
            "feed = store.array('feed')\n"
            "feed.append('ada', 1)\n"
            "walk = feed.owners()\n"
            "next(walk)\n")
        self.store.close()
        begin = time.monotonic()
        ended = subprocess.run(
            [sys.executable, "-c", script, self.uri()], timeout=60, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), time.monotonic() - begin)
