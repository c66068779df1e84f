"""lying_server.py PORT-FILE: a server on the loopback address that sends wrong answers.

Its handshake is correct. Every other answer depends on the command's database, so that one process
serves every mode: `mongodb://127.0.0.1:PORT/MODE`. The modes are at the end of this file. It uses no
driver: it writes its own BSON, because some of it must be malformed.
"""

import itertools
import os
import random
import socketserver
import struct
import sys
import time


class Raw(bytes):
    """Bytes that are written unchanged, with the type of a document."""


class Int64(int):
    """An integer of eight bytes."""


def value_bytes(value):
    """The type of a value, and its bytes."""
    if isinstance(value, Raw):
        return 3, bytes(value)
    if value is None:
        return 10, b""
    if isinstance(value, bool):
        return 8, bytes([value])
    if isinstance(value, Int64) or isinstance(value, int) and not -2**31 <= value < 2**31:
        return 18, struct.pack("<q", value)
    if isinstance(value, int):
        return 16, struct.pack("<i", value)
    if isinstance(value, float):
        return 1, struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return 2, struct.pack("<i", len(text)) + text
    if isinstance(value, dict):
        return 3, encode(value)
    return 4, encode({str(i): one for i, one in enumerate(value)})


def encode(document):
    """A document as BSON."""
    body = b""
    for name, value in document.items():
        kind, data = value_bytes(value)
        body += bytes([kind]) + name.encode() + b"\0" + data
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def texts(data):
    """The string fields of a document, in order, and its first field of any type."""
    found, at = {}, 4
    sizes = {1: 8, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16}
    while at < len(data) - 1:
        kind, end = data[at], data.index(b"\0", at + 1)
        name, at = data[at + 1:end].decode(), end + 1
        length = struct.unpack("<i", data[at:at + 4])[0] if kind in (2, 3, 4, 5) else 0
        size = {2: 4 + length, 3: length, 4: length, 5: 5 + length}.get(kind, sizes.get(kind, 0))
        if kind == 2:
            found[name] = data[at + 4:at + 3 + length].decode()
        elif not found:
            found[name] = ""
        at += size
    return found


# ---- correct answers ----------------------------------------------------------------------------

BOUNDS = {"threshold": Int64(5), "pageCapacity": Int64(5), "headBytesMax": Int64(1 << 20),
          "pageBytesMax": Int64(1 << 20)}
DEFINITION = {"_id": "feed", "entry": {
    "name": "feed", "collection": "users", "array": "activities", "countField": "activityCount",
    "overflowField": "hasOverflow", "pagesField": "overflowPages",
    "pageCollection": "overflowActivities", "pageOwner": "userId", "pageNumber": "page",
    "pageArray": "activities", "pageCount": "count", "layout": "outlier", "keep": "newest",
    "opWindow": 64, "bounds": BOUNDS, "largest": BOUNDS},
    "imports": []}  # what an aggregation looks up beside the definition
STATE = {"epoch": Int64(7), "rev": Int64(8), "first": Int64(5), "n": Int64(0), "pages": Int64(1),
         "low": Int64(0), "removed": Int64(0), "ops": [{"count": Int64(0), "after": Int64(8)}]}


def documents(collection):
    """The documents of a collection, with the fields that Spillway's projections compute."""
    if collection == "spillway.definitions":
        return [DEFINITION]
    if collection.startswith("spillway."):
        return []
    elements = [{"id": j} for j in range(3)]
    computed = {"spillwayState": STATE, "live": 3, "arrayBytes": 60, "rootBytes": 300, "ownBytes": 200,
                "from": Int64(0), "run": elements, "elements": 3, "bytes": 60, "ours": True,
                "full": False, "page": 0, "incarnations": [{"epoch": Int64(3), "pages": 1}]}
    return [{"_id": owner, "activities": elements, "spill": {"activities": STATE}, **computed}
            for owner in ("ada", "bob", "eve")]


def plausible(name, collection, database):
    """An answer that a server could give."""
    if name in ("find", "aggregate", "getMore", "listCollections", "listIndexes"):
        namespace, found = f"{database}.{collection}", documents(collection)
        if name == "listCollections":
            namespace = f"{database}.$cmd.listCollections"
            found = [{"name": one, "type": "collection", "options": {}, "info": {}}
                     for one in ("users", "spillway.definitions")]
        if name == "listIndexes":
            found = [{"v": 2, "key": {"_id": 1}, "name": "_id_"}]
        batch = "nextBatch" if name == "getMore" else "firstBatch"
        return {"cursor": {"id": Int64(0), "ns": namespace, batch: found}, "ok": 1.0}
    if name == "findAndModify":
        return {"value": {"_id": "ada", "spillwayState": STATE, "live": 4},
                "lastErrorObject": {"n": 1, "updatedExisting": True}, "ok": 1.0}
    return {"n": 1, "nModified": 1, "count": 5, "indexSizes": {"_id_": 4096}, "ok": 1.0}


# ---- lies ---------------------------------------------------------------------------------------

DICE = random.Random(18)
WRONG = [None, "x", -1, Int64(2**63 - 1), Int64(-2**63), float("nan"), float("inf"), [], {}, True]


def batch_of(answer):
    """The documents of an answer with a cursor, or None."""
    cursor = answer.get("cursor", {})
    return cursor.get("firstBatch", cursor.get("nextBatch"))


def replaced(value, choose):
    """The value with some values replaced, except the cursor fields that a driver itself reads."""
    if isinstance(value, dict):
        return {name: one if name in ("ns", "ok") or name == "id" and isinstance(one, Int64)
                else replaced(one, choose) for name, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, choose) for one in value]
    return choose(value)


def in_batch(answer, change):
    """The answer with each of its documents changed."""
    batch = batch_of(answer)
    if batch is not None:
        batch[:] = [change(document) for document in batch]
    return answer


def nested(depth):
    """A document in a document in ..."""
    inner = b"\x05\0\0\0\0"
    for _ in range(depth):
        inner = struct.pack("<i", len(inner) + 8) + b"\x03a\0" + inner + b"\0"
    return Raw(inner)


def endless(answer, empty=False):
    """A cursor that never ends."""
    if batch_of(answer) is not None:
        answer["cursor"]["id"] = Int64(99)
        if empty:
            batch_of(answer).clear()
    return answer


def unordered(answer):
    """The documents in reverse order."""
    if batch_of(answer) is not None:
        batch_of(answer).reverse()
    return answer


def namespace(answer, name):
    """The answer with a cursor of another collection."""
    if "cursor" in answer:
        answer["cursor"]["ns"] = name
    return answer


def is_number(value):
    """Whether the value is a number, and not true or false."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Each mode, and how it changes an answer.
LIES = {
    "empty": lambda a: {},
    "missing": lambda a: in_batch(a, lambda d: {}),
    "types": lambda a: replaced(a, lambda v: DICE.choice(WRONG) if DICE.random() < .3 else v),
    "negative": lambda a: replaced(a, lambda v: Int64(-2**63) if is_number(v) else v),
    "huge": lambda a: replaced(a, lambda v: Int64(2**63 - 1) if is_number(v) else v),
    "nan": lambda a: replaced(a, lambda v: float("nan") if is_number(v) else v),
    "malformed": lambda a: in_batch(a, lambda d: {**d, "run": Raw(b"\x40\0\0\0\x02x\0\xff\0\0\0\0"),
                                                  "entry": Raw(b"\x09\0\0\0\x03e\0\x7f\0")}),
    "deep": lambda a: in_batch(a, lambda d: {**d, "activities": nested(5000)}),
    "endless": endless,
    "batches": lambda a: endless(a, empty=True),
    "unordered": unordered,
    "nameless": lambda a: in_batch(a, lambda d: {**d, "_id": 7}),
    "collated": lambda a: in_batch(a, lambda d: {**d, "options": {"collation": {"locale": "en"}}}),
    "elsewhere": lambda a: namespace(a, "elsewhere.users"),
    "old": lambda a: {**a, "maxWireVersion": 8} if "maxWireVersion" in a else a,
    "never": lambda a: a,
    "drip": lambda a: a,
    "half": lambda a: a,
    "stranger": lambda a: a,
}


class Handler(socketserver.BaseRequestHandler):
    """One connection."""

    def exactly(self, count):
        """Receive exactly `count` bytes."""
        data = b""
        while len(data) < count:
            got = self.request.recv(count - len(data))
            if not got:
                raise ConnectionError
            data += got
        return data

    def answer(self, data):
        """The mode and the answer to a command."""
        command = texts(data)
        name = next(iter(command))
        mode = command.get("$db", "")
        if name.lower() in ("hello", "ismaster"):
            greeting = {"ismaster": True, "isWritablePrimary": True, "helloOk": True,
                        "maxBsonObjectSize": 16 << 20, "maxMessageSizeBytes": 48000000,
                        "maxWriteBatchSize": 100000, "logicalSessionTimeoutMinutes": 30,
                        "minWireVersion": 0, "maxWireVersion": 21, "ok": 1.0}
            return "", LIES["old"](greeting) if mode == "old" else greeting
        collection = command.get("collection", "") if name == "getMore" else command[name]
        return mode, LIES[mode](plausible(name, collection, mode))

    def handle(self):
        """Answer until the connection is closed."""
        try:
            for number in itertools.count():
                size, request, _, kind = struct.unpack("<iiii", self.exactly(16))
                data = self.exactly(size - 16)
                legacy = kind == 2004
                mode, answer = self.answer(data[data.index(b"\0", 4) + 9:] if legacy else data[5:])
                reply = struct.pack("<iqii", 8, 0, 0, 1) if legacy else struct.pack("<IB", 0, 0)
                reply += encode(answer)
                packet = struct.pack("<iiii", 16 + len(reply), number,
                                     request + (mode == "stranger"),
                                     1 if legacy else 2013) + reply
                if mode == "never":
                    time.sleep(60)
                elif mode == "drip":
                    for byte in packet:
                        self.request.sendall(bytes([byte]))
                        time.sleep(0.2)
                elif mode == "half":
                    self.request.sendall(packet[:len(packet) // 2])
                    return
                else:
                    self.request.sendall(packet)
        except OSError:
            pass


class Server(socketserver.ThreadingTCPServer):
    """One thread for a connection."""

    allow_reuse_address = daemon_threads = True


with Server(("127.0.0.1", 0), Handler) as server:
    with open(sys.argv[1] + ".new", "w", encoding="ascii") as file:
        file.write(f"{server.server_address[1]} {' '.join(LIES)}\n")
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    server.serve_forever()
