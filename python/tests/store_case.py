"""What the tests share: a folder for each, and a store with a small feed."""

from __future__ import annotations

import os
import tempfile
import unittest
import uuid

import spillway

SERVER = os.environ.get("SPILLWAY_TEST_URI")


def small_feed(name: str = "feed", **changes: object) -> spillway.Definition:
    """Ten elements in a head, ten in a page."""
    return spillway.Definition.preset(
        "feed-recent", name, threshold=10, page_capacity=10, **changes
    )


class StoreCase(unittest.TestCase):
    """A test with an embedded store in a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.store = spillway.open(self.uri())
        self.addCleanup(self.store.close)
        self.store.define(small_feed())
        self.feed = self.store.array("feed")

    def uri(self) -> str:
        return os.path.join(self.folder, "store")


def server_uri() -> str:
    """A database of its own on the server of SPILLWAY_TEST_URI."""
    assert SERVER is not None
    address, _, options = SERVER.partition("?")
    place = address.rsplit("/", 1)[0] if address.count("/") > 2 else address
    return f"{place}/python_{uuid.uuid4().hex[:12]}" + (f"?{options}" if options else "")
