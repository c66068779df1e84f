#!/usr/bin/env python3
"""Read an array that Spillway manages on a MongoDB-compatible server, and append to it, with pymongo.

    feed.py NAME read OWNER [LIMIT [BEFORE]]    newest first; BEFORE is a number that was printed
    feed.py NAME count OWNER
    feed.py NAME append OWNER ELEMENT...        one operation per element

NAME is a definition's name, OWNER and ELEMENT are Extended JSON (an owner may be a plain word). The
environment variable SPILLWAY_URI has the store's URI, with a database.
docs/reference/mongodb.md explains the fields under `spill`; docs/how-to/recipes.md explains which
calls are safe and why.
"""

import os
import subprocess
import sys
import uuid

import bson
import pymongo
from bson import json_util
from bson.binary import Binary
from bson.int64 import Int64

NO_NUMBER = 2**63 - 1  # above every sequence number
OP_BYTES = 112         # the maximum size of a stored operation id
MARGIN_BYTES = 512     # fields of `spill` that may be added, and longer numbers

# The values and the fields of definitions that this recipe knows. Another field may be a rule that an
# append of the recipe would break, so check_known refuses the definition.
KNOWN_VALUES = {"layout": ["outlier"], "keep": ["newest", "oldest"]}
KNOWN_FIELDS = """
    name collection array countField overflowField pagesField pageCollection pageOwner pageNumber
    pageArray pageCount idField timeField layout keep opWindow keepElements keepSeconds largest bounds
    bounds.threshold bounds.pageCapacity bounds.headBytesMax bounds.pageBytesMax
    """.split()


class Feed:
    """One array definition of a store."""

    def __init__(self, uri, name):
        # Appends survive, and reads see only what survives, as long as a majority of the servers does.
        client = pymongo.MongoClient(uri, w="majority", readConcernLevel="majority")
        database = client.get_default_database()
        found = database["spillway.definitions"].find_one({"_id": name})
        if found is None:
            raise SystemExit(f"there is no definition '{name}'")
        self.name = name
        self.definition = found["entry"]  # bounds may change: an application should read it again sometimes
        check_known(name, self.definition)
        self.heads = database[self.definition["collection"]]
        self.pages = database[self.definition["pageCollection"]]
        self.keeps_newest = self.definition["keep"] == "newest"

    # ---- places of documents -----------------------------------------------------------------

    def _head(self):
        """Collection, array, bookkeeping and count of a head. A head may have several arrays."""
        array = self.definition["array"]  # may be a path, such as stats.events
        bookkeeping = f"spill.{array.replace('.', '$')}"
        return self.heads, array, bookkeeping, self.definition["countField"]

    def _page(self):
        return self.pages, self.definition["pageArray"], "spill", self.definition["pageCount"]

    def _pages_of(self, owner, head):
        """The owner's pages: only pages that the head counts, and of its own incarnation (epoch)."""
        return {self.definition["pageOwner"]: {"$eq": owner}, "spill.epoch": head["epoch"],
                "_id.page": {"$lt": head["pages"]}}

    # ---- reading -----------------------------------------------------------------------------

    def _read_document(self, place, match, before=NO_NUMBER, limit=0):
        """The state of the document that `match` finds, and its newest elements below `before`."""
        collection, array, spill, _ = place
        live = {"$cond": [has_types(array), {"$size": {"$ifNull": [f"${array}", []]}}, -1]}
        gone = {"$ifNull": [f"${spill}.gone", []]}
        below = {"$size": {"$filter": {"input": gone, "cond": {"$lt": ["$$this", before]}}}}
        end = {"$subtract": [{"$subtract": [Int64(before), f"${spill}.first"]}, below]}
        end = {"$max": [0, {"$min": [live, end]}]}  # elements below `before`
        start = {"$max": [0, {"$subtract": [end, limit]}]}
        count = {"$min": [limit, end]}
        run = {"$cond": [{"$gt": [count, 0]},
                         {"$slice": [f"${array}", start, {"$max": [1, count]}]}, []]}
        found = list(collection.aggregate([
            *match,
            {"$project": {"spill": f"${spill}", "live": live, "start": start, "run": run}},
        ]))
        if not found:
            return None
        what, managed = f"{collection.name}: '{array}'", "epoch" in found[0].get("spill", {})
        if found[0]["live"] < 0:
            raise RuntimeError(f"{what} is not an array, or a field around it is not a document")
        if found[0]["live"] > 0 and not managed:
            raise RuntimeError(f"{what} is unmanaged; adopt it with `spillway migrate`")
        if not managed:
            return None
        state = found[0]["spill"]
        state.setdefault("gone", [])
        state["end"] = state["first"] + found[0]["live"] + len(state["gone"])
        state["rows"] = number(state, found[0]["start"], found[0]["run"])
        return state

    def head(self, owner, before=NO_NUMBER, limit=0):
        return self._read_document(self._head(), [{"$match": {"_id": {"$eq": owner}}}], before, limit)

    def page(self, owner, head, before=NO_NUMBER, limit=0):
        """The owner's last page that begins below `before`: found by index, never by count."""
        match = {**self._pages_of(owner, head), "spill.first": {"$lt": Int64(before)}}
        return self._read_document(self._page(), [{"$match": match},
                                         {"$sort": {"spill.first": -1, "_id": -1}}, {"$limit": 1}],
                          before, limit)

    def read(self, owner, limit=20, before=NO_NUMBER):
        """Up to `limit` elements numbered below `before`, newest first, as (number, element).

        The last number is the cursor for the next page. Appends do not invalidate it.
        """
        head = self.head(owner, before, limit)
        rows = []
        while head is not None and before > head["low"] and len(rows) < limit:
            part = None
            if not self.keeps_newest or before <= head["first"]:
                part = self.page(owner, head, before, limit - len(rows))
            if part is None:  # keep oldest: elements below all pages; keep newest: above them
                part = head if head["first"] < before else None
            if part is None:
                break
            rows += [row for row in part["rows"] if row[0] >= head["low"]]
            before = part["first"]
        return rows[:limit]

    def count(self, owner):
        """The exact number of live elements. The head's count field may be out of date."""
        while True:
            head = self.head(owner)
            if head is None:
                return 0
            dead = head["low"] + head["removed"]
            if self.keeps_newest:  # `removed` counts deleted numbers below `first`, `gone` has the rest
                return head["end"] - len(head["gone"]) - dead
            if head["pages"] == 0:
                return head["end"] - dead
            last, again = self.page(owner, head), self.head(owner)
            # A removal or a trim in between raises `rev`, a new page raises `pages`: then try again.
            if again is not None and all(again[key] == head[key] for key in ("rev", "pages")):
                return (last or head)["end"] - dead  # the first page may not exist yet

    # ---- appending ---------------------------------------------------------------------------

    def operation(self, owner):
        """The identity of one append: make it before the first try, keep it until there is an answer.

        `base` is a value of the owner's `n` from before the first try.
        """
        head = self.head(owner)
        last = None
        if head is not None and not self.keeps_newest and head["pages"] > 0:
            last = self.page(owner, head)
        base = (last or head or {"n": 0})["n"]
        return {"id": uuid.uuid4().hex, "base": base}

    def append(self, owner, element, operation):
        """Returns the element's sequence number. After a time-out, repeat it with the same operation."""
        given = self._push(owner, element, operation)
        if given is None:  # no head, no room, a closed page, or appended before: leave it to the program
            given = self._append_by_program(owner, element, operation)
        return given

    def _push(self, owner, element, operation):
        """One findAndModify with a guard as its filter. None: refused, and nothing has changed."""
        bounds, window = self.definition["bounds"], self.definition["opWindow"]
        place, match = self._head(), {"_id": {"$eq": owner}}
        slots, most = bounds["threshold"], bounds["headBytesMax"]
        epoch = {"$exists": True}
        if self.keeps_newest:  # the head grows by a page, and a little, before it spills
            slots += bounds["pageCapacity"] + bounds["pageCapacity"] // 8 + 1
        else:  # append to the last page, if the owner has pages
            head = self.head(owner)
            if head is not None and head["pages"] > 0:
                place, slots, most = self._page(), bounds["pageCapacity"], bounds["pageBytesMax"]
                match = {"_id": {"$eq": {"owner": owner, "page": head["pages"] - 1}},
                         self.definition["pageOwner"]: {"$eq": owner}}
                epoch = head["epoch"]
        collection, array, spill, count = place
        identity = Binary(operation["id"].encode())
        live = {"$size": {"$ifNull": [f"${array}", []]}}
        gone = {"$size": {"$ifNull": [f"${spill}.gone", []]}}
        grows = element_bytes(element) + OP_BYTES * (window + 1) + MARGIN_BYTES
        guard = {
            **match,
            f"{spill}.epoch": epoch,
            f"{spill}.sealed": {"$ne": True},
            f"{spill}.ops.id": {"$ne": identity},              # not appended before
            f"{spill}.n": {"$lt": operation["base"] + window},  # or the window may have dropped the id
            "$expr": {"$and": [
                {"$lte": [{"$add": [live, gone, 1]}, slots]},
                {"$lte": [{"$add": [{"$bsonSize": "$$ROOT"}, grows]}, most]},
                # Another program may have replaced the array: then deleted numbers lie behind its end.
                {"$lt": [{"$max": f"${spill}.gone"}, {"$add": [f"${spill}.first", live, gone]}]},
            ]},
        }
        note = {"id": identity, "count": Int64(1), "after": Int64(0)}
        update = {
            "$push": {array: {"$each": [element]},
                      f"{spill}.ops": {"$each": [note], "$position": 0, "$slice": window}},
            "$inc": {f"{spill}.n": Int64(1)},
        }
        if count:
            update["$inc"][count] = 1
        after = collection.find_one_and_update(
            guard, update, return_document=pymongo.ReturnDocument.AFTER,
            projection={"_id": 0, "first": f"${spill}.first", "live": live, "gone": gone})
        return after and after["first"] + after["live"] + after["gone"] - 1

    def _append_by_program(self, owner, element, operation):
        """`spillway append` creates heads and pages, spills, and recognizes repeated operations."""
        run = subprocess.run(
            [os.environ.get("SPILLWAY", "spillway"), "append", "env:", self.name, extended(owner),
             "-", "--quiet", "--op", f"{operation['id']}@{operation['base']}"],
            input=extended(element) + "\n", stdout=subprocess.PIPE, text=True, check=True)
        return int(run.stdout)


def check_known(name, definition):
    """Refuse a definition that has a field, or a value, that this recipe does not know."""
    unknown = [f"{field} '{definition.get(field)}'" for field, values in KNOWN_VALUES.items()
               if definition.get(field) not in values]
    fields = [*definition, *(f"bounds.{field}" for field in definition["bounds"])]
    unknown += [f"field '{field}'" for field in fields if field not in KNOWN_FIELDS]
    if unknown:
        raise SystemExit(f"definition '{name}': this recipe does not know its {unknown[0]}; use the "
                         "library or the program")


def has_types(array):
    """An expression: the array, and each document around it, is missing or has its type."""
    parts = array.split(".")
    paths = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return {"$and": [{"$in": [{"$type": f"${path}"},
                              ["missing", "array" if path == array else "object"]]}
                     for path in paths]}


def number(state, start, run):
    """Sequence numbers of live elements, from index `start` of the array, newest first."""
    gone, rows = sorted(state["gone"]), []
    seq = state["first"] + start
    for element in run:
        while gone and gone[0] <= seq:
            gone.pop(0)
            seq += 1
        rows.append((int(seq), element))
        seq += 1
    return rows[::-1]


def element_bytes(element):
    """The size of an array entry: its value, and an index of up to seven digits."""
    return len(bson.encode({"": element})) + 8


def extended(value):
    return json_util.dumps(value, json_options=json_util.CANONICAL_JSON_OPTIONS)


def parse_owner(text):
    try:
        return json_util.loads(text)
    except ValueError:
        return text


def main():
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    name, command, owner = sys.argv[1], sys.argv[2], parse_owner(sys.argv[3])
    rest = sys.argv[4:]
    feed = Feed(os.environ["SPILLWAY_URI"], name)
    if command == "read":
        for seq, element in feed.read(owner, *map(int, rest)):
            print(json_util.dumps({"seq": seq, "element": element},
                                  json_options=json_util.RELAXED_JSON_OPTIONS))
    elif command == "count":
        print(feed.count(owner))
    elif command == "append":
        for element in map(json_util.loads, rest):
            print(feed.append(owner, element, feed.operation(owner)))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
