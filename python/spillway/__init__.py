"""Spillway: arrays without a limit, on documents with one.

The cost of an append or of a page read does not depend on the array's length.

    import spillway

    with spillway.open("feeds.spill") as store:
        store.define(spillway.Definition.preset("feed-recent", "feed"))
        feed = store.array("feed")
        feed.append("ada", {"type": "joined", "group": "engines"})
        print(feed.read("ada").elements)

The library runs in this process. Values are those of the package bson (of pymongo): str, int,
float, bool, bytes, datetime, ObjectId, dict, list and the others. An owner is the value of a
document's _id; an element is any value.

Threads: all classes may be used from any thread. A call into the library releases the global
interpreter lock. After os.fork() only the parent may use its stores: a child
opens its own.
"""

from ._array import Appended, Array, Count, Element, Operation, Page
from ._deadline import deadline
from ._definition import Definition, presets
from ._errors import (
    BusyError,
    CancelledError,
    ConflictError,
    CorruptError,
    DeniedError,
    FormatError,
    InputOutputError,
    InvalidError,
    NoMemoryError,
    NoSpaceError,
    NotFoundError,
    ParseError,
    ReadOnlyError,
    RefusedError,
    SpillwayError,
    TimedOutError,
    TooBigError,
    UnknownOutcomeError,
)
from ._scan import scan
from ._store import Store, open, version

__version__ = version()

__all__ = [
    "Appended",
    "Array",
    "BusyError",
    "CancelledError",
    "ConflictError",
    "CorruptError",
    "Count",
    "Definition",
    "DeniedError",
    "Element",
    "FormatError",
    "InputOutputError",
    "InvalidError",
    "NoMemoryError",
    "NoSpaceError",
    "NotFoundError",
    "Operation",
    "Page",
    "ParseError",
    "ReadOnlyError",
    "RefusedError",
    "SpillwayError",
    "Store",
    "TimedOutError",
    "TooBigError",
    "UnknownOutcomeError",
    "deadline",
    "open",
    "presets",
    "scan",
    "version",
]
