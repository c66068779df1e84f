"""Appends, reads and changes: values of every type, order, errors, and exactly-once."""

from __future__ import annotations

import datetime
import unittest
from typing import Any

import bson
import spillway
from bson.codec_options import CodecOptions
from store_case import SERVER, StoreCase, server_uri, small_feed

VALUES: list[Any] = [
    "text with ü and \0",
    1,
    2**40,
    1.5,
    True,
    None,
    b"bytes",
    bson.ObjectId("0123456789abcdef01234567"),
    datetime.datetime(2026, 3, 5, 12, 0, 0, 123000),
    bson.Decimal128("1.10"),
    bson.Timestamp(5, 6),
    bson.Regex("^a", "i"),
    [1, [2, {"a": 3}]],
    {"a": {"b": [1, "two"]}, "_id": 7},
    {},
]


class ArrayTest(StoreCase):
    def test_arguments_of_a_wrong_type(self) -> None:
        for elements in ("abc", b"abc", {"a": 1}):
            with self.assertRaisesRegex(TypeError, "elements is a list"):
                self.feed.extend("ada", elements)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "bytes, not str"):
            self.feed.operation("ada", id="abc")  # type: ignore[arg-type]
        self.assertFalse(self.feed.count("ada").exists)

    def test_an_append_has_the_base_of_the_next_operation(self) -> None:
        first = self.feed.append("ada", 1, operation=self.feed.operation("ada"))
        self.assertEqual(first.op_base, self.feed.operation("ada").base)
        operation = spillway.Operation(b"next", first.op_base)
        for repeated in (False, True):
            done = self.feed.append("ada", 2, operation=operation)
            self.assertEqual((done.first, done.repeated), (1, repeated))

    def test_values_come_back_as_they_were(self) -> None:
        self.feed.extend("ada", VALUES)
        read = self.feed.read("ada", limit=100, oldest_first=True)
        self.assertEqual([element.value for element in read], VALUES)
        self.assertEqual([element.seq for element in read], list(range(len(VALUES))))
        self.assertFalse(read.more)

    def test_owners_of_several_types(self) -> None:
        owners: list[Any] = ["ada", 5, bson.ObjectId(), {"a": 1}]
        for owner in owners:
            self.feed.append(owner, {"of": owner})
        for owner in owners:
            self.assertEqual(self.feed.read(owner).elements[0].value, {"of": owner})
        self.assertCountEqual(map(repr, self.feed.owners()), map(repr, owners))

    def test_pages_and_cursors(self) -> None:
        appended = self.feed.extend("ada", list(range(105)))
        self.assertEqual((appended.first, appended.count), (0, 105))
        count = self.feed.count("ada")
        self.assertEqual((count.count, count.next, count.exists), (105, 105, True))
        self.assertGreater(count.pages, 5)
        for page in (1, 7, 1000):
            oldest = [element.value for element in self.feed.iterate("ada", page=page)]
            newest = self.feed.iterate("ada", newest_first=True, page=page)
            self.assertEqual(oldest, list(range(105)))
            self.assertEqual([element.value for element in newest], oldest[::-1])
        read = self.feed.read("ada", limit=3, before=50, skip=2)
        self.assertEqual([element.seq for element in read], [47, 46, 45])
        self.assertEqual(self.feed.read("ada", after=103).elements[0].value, 104)
        self.assertFalse(self.feed.count("bob").exists)
        self.assertEqual(len(self.feed.read("bob")), 0)

    def test_change_and_remove(self) -> None:
        self.feed.extend("ada", list(range(30)))
        self.feed.edit("ada", 3, "changed")
        self.feed.remove("ada", 4)
        values = [element.value for element in self.feed.iterate("ada")]
        self.assertEqual(values, [0, 1, 2, "changed", *range(5, 30)])
        with self.assertRaises(spillway.NotFoundError):
            self.feed.remove("ada", 4)
        self.assertEqual(self.feed.trim("ada", 5), 25)
        self.assertEqual(self.feed.count("ada").count, 5)
        self.feed.update("ada", {"$set": {"name": "Ada"}})
        self.feed.drop("ada")
        self.assertEqual(self.feed.count("ada").count, 0)

    def test_operation_is_applied_once(self) -> None:
        operation = self.feed.operation("ada")
        first = self.feed.append("ada", 1, operation=operation)
        again = self.feed.append("ada", 1, operation=operation)
        self.assertEqual((first.repeated, again.repeated), (False, True))
        self.assertEqual(again.first, first.first)
        self.assertEqual(self.feed.count("ada").count, 1)
        with self.assertRaises(spillway.ConflictError) as caught:
            self.feed.extend("ada", [7, 8], operation=operation)
        self.assertEqual(caught.exception.code, "CONFLICT")

    def test_deadline(self) -> None:
        with spillway.deadline(0):
            with self.assertRaises(spillway.TimedOutError) as caught:
                self.feed.append("ada", 1)
            with spillway.deadline(60), self.assertRaises(spillway.TimedOutError):
                self.feed.count("ada")
        self.assertEqual(caught.exception.code, "TIMED_OUT")
        with spillway.deadline(60):
            self.assertEqual(self.feed.append("ada", 2).first, 0)
        self.assertEqual(self.feed.count("ada").count, 1)

    def test_set_keeps_each_id_once(self) -> None:
        self.store.define(
            small_feed("tags", id_field=".", unique=True, array="tags", collection="tagged",
                       page_collection="tagPages"))
        tags = self.store.array("tags")
        appended = tags.extend("ada", ["a", "b", "a"])
        self.assertEqual((appended.count, appended.duplicates), (3, 1))
        self.assertTrue(tags.contains("ada", "b"))
        self.assertEqual(tags.find("ada", "c"), None)
        self.assertEqual(tags.remove_id("ada", "a"), 0)
        self.assertFalse(tags.contains("ada", "a"))

    def test_codec_options(self) -> None:
        options: Any = CodecOptions(tz_aware=True)
        with spillway.open("memory:", codec_options=options) as store:
            store.define(small_feed())
            feed = store.array("feed")
            at = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
            feed.append("ada", at)
            self.assertEqual(feed.read("ada").elements[0].value, at)

    def test_walk_meets_every_element(self) -> None:
        expected = {}
        for owner in range(50):
            expected[owner] = list(range(owner))
            if owner:
                self.feed.extend(owner, expected[owner])
        met: dict[int, list[int]] = {}
        for owner, element in self.feed.walk():
            met.setdefault(owner, []).append(element.value)
        self.assertEqual(met, {owner: values for owner, values in expected.items() if values})

    def test_wrong_arguments(self) -> None:
        with self.assertRaisesRegex(spillway.InvalidError, "limit"):
            self.feed.read("ada", limit=0)
        with self.assertRaises(spillway.InvalidError):
            self.feed.append([1], 1)
        with self.assertRaises(OverflowError):
            self.feed.remove("ada", 2**70)
        with self.assertRaises(bson.errors.InvalidDocument):
            self.feed.append("ada", object())
        with self.assertRaises(spillway.TooBigError):
            self.feed.append("ada", b"x" * (17 << 20))
        self.assertEqual(self.feed.count("ada").count, 0)


@unittest.skipUnless(SERVER, "SPILLWAY_TEST_URI names no server")
class ServerArrayTest(ArrayTest):
    """The same on a server."""

    def uri(self) -> str:
        return server_uri()
