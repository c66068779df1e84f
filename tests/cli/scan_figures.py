"""Expected results of a scan, computed from the documents independently, for tests/cli/test_scan*.sh.

  make FOLDER             write inputs: a dump, files of each format, damaged ones
  check FILE JSON...      compare these outputs of scan --json with the documents of FILE (NDJSON)
"""

import base64
import datetime
import gzip
import json
import math
import os
import random
import struct
import sys

CHILDREN_MAX = 128  # arrays and documents with different names; more of them are a map
MAP_KEYS_MIN = 64
ERROR = 1 / 128
LIMITS = {"elements": 10000, "bytes": 200000, "documentBytes": 16 * 1024 * 1024, "paidPerCent": 80}

# ---- BSON ----------------------------------------------------------------------------------------


def special(value):
    """(type, bytes) if the value is Extended JSON's notation of a special type, or None."""
    if len(value) == 1:
        (name, inner), = value.items()
        if name == "$oid":
            return 0x07, bytes.fromhex(inner)
        if name == "$numberLong":
            return 0x12, struct.pack("<q", int(inner))
        if name == "$date":
            if isinstance(inner, dict):
                return 0x09, struct.pack("<q", int(inner["$numberLong"]))
            return 0x09, struct.pack("<q", milliseconds(inner))
        if name == "$binary":
            data = base64.b64decode(inner["base64"])
            return 0x05, struct.pack("<iB", len(data), int(inner["subType"], 16)) + data
    return None


def milliseconds(text):
    if isinstance(text, int):
        return text
    time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round((time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc))
                 / datetime.timedelta(milliseconds=1))


def encode(value):
    """(type, bytes) of a value."""
    if isinstance(value, dict):
        return special(value) or (0x03, document(value.items()))
    if isinstance(value, list):
        return 0x04, document((str(i), item) for i, item in enumerate(value))
    if isinstance(value, str):
        text = value.encode()
        return 0x02, struct.pack("<i", len(text) + 1) + text + b"\0"
    if isinstance(value, bool):
        return 0x08, bytes([value])
    if value is None:
        return 0x0A, b""
    if isinstance(value, float):
        return 0x01, struct.pack("<d", value)
    small = -2 ** 31 <= value < 2 ** 31
    return (0x10, struct.pack("<i", value)) if small else (0x12, struct.pack("<q", value))


def document(fields):
    parts = []
    for name, value in fields:
        kind, data = encode(value)
        parts.append(bytes([kind]) + name.encode() + b"\0" + data)
    body = b"".join(parts)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


sizes_known = {}  # sizes of arrays and documents, by identity


def size_of(value):
    """The number of bytes that `encode` writes for a value."""
    if not is_container(value):
        return len(encode(value)[1])
    if id(value) not in sizes_known:
        items = enumerate(value) if isinstance(value, list) else value.items()
        sizes_known[id(value)] = 5 + sum(2 + len(str(name).encode()) + size_of(item)
                                         for name, item in items)
    return sizes_known[id(value)]


# ---- figures -------------------------------------------------------------------------------------


def is_container(value):
    return isinstance(value, list) or (isinstance(value, dict) and special(value) is None)


def containers(value, path, maps):
    """Each array and document in a value, with its path: names and kinds."""
    if isinstance(value, list):
        items = [("[]", item) for item in value]
    else:
        items = [("*" if path in maps else "." + name, item) for name, item in value.items()]
    yield path, value
    for name, item in items:
        if is_container(item):
            kind = "array" if isinstance(item, list) else "document"
            yield from containers(item, path + ((name, kind),), maps)


def find_maps(documents):
    maps = set()
    while True:
        names = {}
        for item in documents:
            for path, _ in containers(item, (), maps):
                if path:
                    names.setdefault(path[:-1], set()).add(path[-1])
        more = {path for path, found in names.items()
                if len(found) > CHILDREN_MAX and path not in maps}
        if not more:
            return maps
        maps.add(min(more, key=len))


def text_of(path):
    text = ""
    for name, _ in path:
        if name == "[]":
            text += name
            continue
        text += "." if text else ""
        plain = name == "*" or not any(letter in name[1:] for letter in '.*[]"\\ ')
        text += "*" if name == "*" else name[1:] if plain else json.dumps(name[1:], ensure_ascii=False)
    return text


class Path:
    def __init__(self):
        self.lengths, self.elements, self.bytes = [], [], 0
        self.documents = self.bytes_max = self.over_elements = self.over_bytes = self.paid = 0
        self.owners = []

    def add(self, value):
        size = size_of(value)
        self.lengths.append(len(value))
        self.bytes += size
        if isinstance(value, list):
            self.elements += [size_of(item) for item in value]
        return size

    def end_document(self, path, owner, values, document_bytes):
        """`values` are (length, size, value) of this path in the document."""
        size = sum(value[1] for value in values)
        longest = max(values, key=lambda value: value[:2])
        is_array = isinstance(longest[2], list)
        self.documents += 1
        self.bytes_max = max(self.bytes_max, size)
        if not (longest[0] > 0 if is_array else longest[0] >= MAP_KEYS_MIN):
            return
        self.over_elements += longest[0] > LIMITS["elements"]
        spread = is_array or max(map(size_of, longest[2].values())) < longest[1] // 2
        if size > LIMITS["bytes"] and spread:
            self.over_bytes += 1
            self.paid += bool(path) and size * 100 >= document_bytes * LIMITS["paidPerCent"]
        self.owners.append((-longest[0], -size, owner, document_bytes))


def figures(documents):
    maps = find_maps(documents)
    paths, sizes = {}, []
    for item in documents:
        size = size_of(item)
        sizes.append(size)
        here = {}
        for path, value in containers(item, (), maps):
            bytes_of = paths.setdefault(path, Path()).add(value) if path or value else 0
            here.setdefault(path, []).append((len(value), bytes_of, value))
        for path, values in here.items():
            paths[path].end_document(path, item.get("_id"), values, size)
    reported = {}
    for path, found in paths.items():
        is_map = not path or path[-1][1] == "document"
        if is_map and path not in maps and max(found.lengths) < MAP_KEYS_MIN:
            continue
        text = text_of(path) + (("." if path else "") + "*" if is_map else "")
        reported[text, "map" if is_map else "array"] = path, found
    return reported, sizes, maps


# ---- comparing -----------------------------------------------------------------------------------

failures = 0


def expect(what, reported, wanted):
    global failures
    if reported != wanted:
        print(f"{what}: reported {reported}, should be {wanted}", file=sys.stderr)
        failures += 1


def expect_numbers(what, reported, values):
    values = sorted(values)
    expect(f"{what} count", reported["count"], len(values))
    expect(f"{what} sum", reported["sum"], sum(values))
    if not values:
        return
    expect(f"{what} min", reported["min"], values[0])
    expect(f"{what} max", reported["max"], values[-1])
    for name, part in (("p10", .1), ("p50", .5), ("p90", .9), ("p99", .99), ("p999", .999)):
        exact = values[max(0, math.ceil(round(part * len(values), 6)) - 1)]
        if abs(reported[name] - exact) > exact * ERROR:
            expect(f"{what} {name}", reported[name], exact)


def findings_of(name, reported, sizes):
    found = []
    for (text, kind), (path, numbers) in reported.items():
        lengths = sorted(numbers.lengths)
        low = lengths[max(0, math.ceil(round(.1 * len(lengths), 6)) - 1)]
        over = max(numbers.over_elements, numbers.over_bytes)
        if over and (len(lengths) < 10 or lengths[-1] * 4 > low * 5):
            found.append((f"unbounded-{kind}", name, text, over))
        if numbers.paid:
            found.append(("paid-by-array", name, text, numbers.paid))
    large = sum(size > LIMITS["documentBytes"] // 2 for size in sizes)
    if large:
        found.append(("large-document", name, None, large))
    return sorted(found, key=str)


def check(found, result, name):
    """`name` is the name of the set, which identifies its collection if there are several."""
    reported, sizes, maps = found
    several = len(result["collections"]) > 1
    collection, = (item for item in result["collections"]
                   if not several or item["collection"].endswith(f".{name}"))
    expect("documents", collection["documents"], len(sizes))
    expect("bytes", collection["bytes"], sum(sizes))
    expect_numbers("sizes", collection["sizes"], sizes)
    expect("paths", sorted((path["path"], path["kind"]) for path in collection["paths"]),
           sorted(reported))
    for path in collection["paths"]:
        key = path["path"], path["kind"]
        if key not in reported:
            continue
        at, wanted = reported[key]
        name = f"{result['source']} {path['path']}"
        in_map = any(at[:length] in maps for length in range(len(at)))
        expect_numbers(f"{name} lengths", path["lengths"], wanted.lengths)
        if path["kind"] == "array":
            expect_numbers(f"{name} elements", path["elementBytes"], wanted.elements)
        expect(f"{name} bytes", path["bytes"], wanted.bytes)
        if in_map:
            continue
        expect(f"{name} documents", path["documents"], wanted.documents)
        for field, name_of in (("bytesMax", "bytes_max"), ("overElements", "over_elements"),
                               ("overBytes", "over_bytes"), ("paid", "paid")):
            expect(f"{name} {field}", path[field], getattr(wanted, name_of))
        best = sorted(wanted.owners, key=lambda owner: (owner[:2], str(owner[2])))[:10]
        expect(f"{name} owners", [(owner["length"], owner["bytes"]) for owner in path["owners"]],
               [(-owner[0], -owner[1]) for owner in best])
        if len(set(owner[:2] for owner in wanted.owners)) == len(wanted.owners):
            expect(f"{name} names of owners", [owner["owner"] for owner in path["owners"]],
                   [owner[2] for owner in best])
    expect("findings", sorted(((finding["finding"], finding["collection"], finding["path"],
                                finding["documents"]) for finding in result["findings"]
                               if finding["collection"] == collection["collection"]), key=str),
           findings_of(collection["collection"], reported, sizes))


def read(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


# ---- inputs --------------------------------------------------------------------------------------


def grown(rng):
    """Arrays at several depths, a map with dots in its keys, and a few that have grown."""
    for i in range(400):
        length = 12000 if i == 7 else int(rng.paretovariate(0.9)) % 3000
        yield {
            "_id": {"$oid": f"{i:024x}"}, "name": f"product {i}", "price": i * 0.5,
            "reviews": [{"at": {"$date": 1700000000000 + j}, "stars": j % 5,
                         "text": "x" * (j % 50)} for j in range(length)],
            "tags": ["t%d" % j for j in range(i % 9)],
            "parts": [{"sizes": list(range(j)), "é.ü": [[1], [2, 3]]} for j in range(i % 4)],
            "stock": {f"store.{rng.randrange(500)}": {"n": j, "log": [j] * (j % 3)}
                      for j in range(i % 12)},
            "settings": {"colours": [], "flags": {"a": True, "list": [None, False]}},
        }


def constant(rng):
    """Long arrays of equal lengths: nothing grows here."""
    for i in range(15):
        yield {"_id": i, "vector": [rng.randrange(100) for _ in range(11000)], "label": f"l{i}"}


def small(rng):
    for i in range(500):
        yield {"_id": {"$numberLong": str(i)}, "tags": ["a"] * (i % 7), "sub": {"n": None}}


def crc64(data):
    """CRC-64 of ECMA-182, as in mongodump, one byte at a time."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ 0xC96C5795D7870F42 if byte & 1 else byte >> 1
        table.append(byte)
    crc = 2**64 - 1
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 255]
    return crc ^ 2**64 - 1


def archive(collections):
    """An archive as mongodump --archive writes it: interleaved blocks of collections."""
    end = b"\xff\xff\xff\xff"
    out = struct.pack("<I", 0x8199E26D)
    out += document({"concurrent_collections": 4, "version": "0.1", "server_version": "7.0.0",
                     "tool_version": "100.9.0"}.items())
    for name, documents in collections.items():
        metadata = '{"indexes":[{"key":{"_id":1},"name":"_id_"},{"key":{"by":1},"name":"of an archive"}]}'
        out += document({"db": "shop", "collection": name, "metadata": metadata, "size": 0,
                         "type": "collection"}.items())
    for kind, metadata in (("view", "{}"), ("timeseries", "{}"),
                           ("", '{"options":{"viewOn":"small"}}')):  # these have no data blocks
        out += document({"db": "shop", "collection": f"no {kind}", "metadata": metadata, "size": 0,
                         "type": kind}.items())
    out += end
    places = {name: 0 for name in collections}
    while places:
        for name in list(places):
            head = {"db": "shop", "collection": name, "EOF": False, "CRC": {"$numberLong": "0"}}
            part = collections[name][places[name]:places[name] + 70]
            places[name] += len(part)
            if part:
                out += document(head.items()) + b"".join(part) + end
            else:
                crc = struct.unpack("<q", struct.pack("<Q", crc64(b"".join(collections[name]))))[0]
                out += document({**head, "EOF": True, "CRC": {"$numberLong": str(crc)}}.items()) + end
                del places[name]
    return out


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "wb") as file:
        file.write(data)


def make(folder):
    rng = random.Random(7)
    sets = {"grown": list(grown(rng)), "constant": list(constant(rng)), "small": list(small(rng))}
    encoded = {name: [document(item.items()) for item in items] for name, items in sets.items()}
    for name, items in sets.items():
        lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items).encode()
        data = b"".join(encoded[name])
        for path, content in ((f"{name}.ndjson", lines), (f"{name}.ndjson.gz", lines),
                              (f"{name}.bson", data), (f"{name}.bson.gz", data),
                              (f"dump/shop/{name}.bson", data),
                              (f"dump/shop/{name}.metadata.json", b"{}"),
                              (f"zipped/shop/{name}.bson.gz", data),
                              (f"zipped/shop/{name}.metadata.json.gz", b"{}")):
            write(f"{folder}/{path}", content)
        write(f"{folder}/{name}.json",
              json.dumps(items, ensure_ascii=False, indent=1).encode())
    write(f"{folder}/dump/shop/a%2Fb.bson", encoded["small"][0])
    write(f"{folder}/dump/shop/none.bson", b"")
    write(f"{folder}/dump/shop/none.metadata.json", b"{}")
    write(f"{folder}/dump/shop/view.metadata.json", b'{"options":{"viewOn":"small"}}')
    write(f"{folder}/zipped/shop/view.metadata.json.gz", b'{"options":{"viewOn":"small"}}')
    write(f"{folder}/zipped/shop/times.metadata.json.gz", b'{"options":{"timeseries":{}}}')
    write(f"{folder}/zipped/shop/none.bson.gz", b"")
    write(f"{folder}/zipped/shop/none.metadata.json.gz", b"{}")
    write(f"{folder}/nothing.bson.gz", b"")
    write(f"{folder}/nothing/shop/some.bson.gz", b"")
    whole = archive(encoded)
    write(f"{folder}/shop.archive", whole)
    write(f"{folder}/shop.archive.gz", whole)
    label = whole.index(b"label\0") + 10  # a letter of a string, so that no length changes
    write(f"{folder}/rotten.archive", whole[:label] + b"L" + whole[label + 1:])
    write(f"{folder}/cut.archive", whole[:len(whole) * 2 // 3])
    head = whole.index(b"\xff\xff\xff\xff") + 4  # of the first block
    write(f"{folder}/prelude.archive", whole[:head])
    write(f"{folder}/part.archive", whole[:whole.index(b"\xff\xff\xff\xff", head) + 4])
    write(f"{folder}/noise.archive", whole[:900000] + bytes(300000) + whole[1200000:])
    write(f"{folder}/wide.bson", wide() * 4)
    damage(folder, encoded["small"])


def wide():
    """Two documents near the limit: one of empty documents only, one of elements of two sizes."""
    many = (struct.pack("<B", 3) + b"%d\0" % i + b"\5\0\0\0\0" for i in range(1_150_000))
    sizes = ((b"\x12%d\0" % i + bytes(8)) if i % 2 else (b"\x10%d\0" % i + bytes(4))
             for i in range(1_000_000))
    whole = b""
    for number, parts in enumerate((many, sizes)):
        body = b"".join(parts)
        fields = (b"\x10_id\0" + struct.pack("<i", number) + b"\x04list\0" +
                  struct.pack("<i", len(body) + 5) + body + b"\0")
        whole += struct.pack("<i", len(fields) + 5) + fields + b"\0"
    return whole


def damage(folder, documents):
    """Write damaged inputs, each with the documents that can still be read."""
    whole = b"".join(documents)
    offsets = [0]
    for item in documents:
        offsets.append(offsets[-1] + len(item))

    def changed(at, byte):
        return whole[:at] + bytes([byte]) + whole[at + 1:]

    at = offsets[200]
    rng = random.Random(3)
    write(f"{folder}/cut.bson", whole[:offsets[300] + 9])
    write(f"{folder}/type.bson", changed(at + 4, 0x77))
    write(f"{folder}/length.bson", changed(at + 2, 0x77))
    write(f"{folder}/negative.bson", changed(at + 3, 0xF0))
    write(f"{folder}/short.bson", changed(at, whole[at] - 1))
    write(f"{folder}/hole.bson", whole[:at + 20] + whole[offsets[201] + 30:])
    write(f"{folder}/noise.bson", random.Random(1).randbytes(3000000))
    write(f"{folder}/front.bson", random.Random(2).randbytes(1500000) + whole)
    write(f"{folder}/empty.bson", b"")
    write(f"{folder}/empty.ndjson", b"")
    write(f"{folder}/text.bson", b"this is no BSON, and has no end either\n" * 40)
    latin = document({"_id": 1, "s": "xy"}.items()).replace(b"xy", b"\xe9y")
    write(f"{folder}/latin.bson", whole[:at] + latin + whole[at:])
    deep = {}
    for _ in range(120):
        deep = {"d": deep}
    step = [document({"_id": i, "feed": [{"at": {"$date": 1700000000000 + rng.randrange(10 ** 9)}}
                                         for _ in range(60)]}.items()) for i in range(800)]
    for name, length in (("step", 3), ("leap", 300_000), ("inner", 26)):
        write(f"{folder}/{name}.bson",
              b"".join(step[:9]) + struct.pack("<i", length) + step[9][4:] + b"".join(step[10:]))
    write(f"{folder}/deep.bson", whole[:at] + document(deep.items()) + whole[at:])
    write(f"{folder}/bad.ndjson", b'{"_id":1,"a":[1]}\n{"_id":2,"a":[\n{"_id":3,"a":[1,2]}\nno\n')
    zipped = gzip.compress(whole)
    for name, data in (("half", zipped[:len(zipped) // 2]), ("wrong", b"\x1f\x8b\x08" + whole),
                       ("plain", whole)):
        with open(f"{folder}/{name}.bson.gz", "wb") as file:
            file.write(data)
    write(f"{folder}/half/shop/there.bson", whole)
    write(f"{folder}/half/shop/there.metadata.json", b"{}")
    write(f"{folder}/half/shop/gone.metadata.json", b"{}")
    write(f"{folder}/half/shop/empty.bson", b"")
    print(json.dumps({"at": at, "cut": offsets[300],
                      "step": sum(map(len, step[:9]))}))


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2])
        return
    found = figures(read(sys.argv[2]))
    for path in sys.argv[3:]:
        with open(path, encoding="utf-8") as file:
            check(found, json.load(file), os.path.basename(sys.argv[2]).split(".")[0])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
