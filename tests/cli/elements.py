#!/usr/bin/env python3
"""Documents with arrays, and a comparison of what `import --elements` makes of them with the source.

    elements.py make FOLDER           write small inputs of each format, in the shapes of real data
    elements.py rooms DATA FILE       write the rooms of the real chat, one document for each
    elements.py check SOURCE EXPORT --elements PATH [--owner PATH] [--entries-as KEY]
                [--owner-inner FIELD[=PATH]] [--backwards] [--heads FILE --collection NAME]

SOURCE has documents (NDJSON, also .gz), EXPORT is the output of `export --relaxed`, and --heads that of
`export --documents --plain --relaxed`: then the heads must have the documents' other fields. The check
compares each element, in order, and exits with 1 at the first difference.
"""
import argparse
import gzip
import json
import os
import random
import sys

import scan_figures


class Wrong(Exception):
    """The store differs from the source."""


def lines(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


# ---- the inputs ----------------------------------------------------------------------------------


def rooms(rng):
    for i in range(14):
        length = 900 if i == 3 else rng.randrange(40) * (i % 5)
        log = {"opened": {"$date": 1417390514775 + i},
               "messages": [{"msg": i * 1000 + j, "at": {"$date": 1417390514775 + j * 1000},
                             "text_bytes": j % 90, "mentions": ["u%05d" % j] * (j % 3)}
                            for j in range(length)],
               "closed": None}
        room = {"_id": f"room {i}", "topic": {"title": f"topic {i}", "pins": [1, {"a": i}]},
                "log": log, "users": i}
        if i == 5:
            del log["messages"]
        if i == 6:
            room["log"] = "none"
        yield room


def versions(rng, length):
    return [{"name": f"{length - j}.{rng.randrange(9)}", "date": "2026-08-21"}
            for j in range(length)]


def products(rng):
    for i in range(9):
        array = versions(rng, 700 if i == 4 else i * 7)
        yield {"_id": f"product/{i}", "releases": [], "versions": array}


def product_maps(rng):
    for product in products(rng):
        entries = {item["name"]: item for item in product["versions"]}
        product["versions"] = entries
        product["releases"] = {"1.0": {"eol": True}, "2.0": "2026-01-01", "x.y": None, "": [1, {}]}
        yield product


def advisories(rng):
    for i in range(40):
        affected = [{"package": {"name": f"p{i % 7}-{j}", "ecosystem": "PyPI"},
                     "versions": [f"{k}.0" for k in range(60 if i == 9 else rng.randrange(12))]}
                    for j in range(i % 4)]
        advisory = {"_id": f"PYSEC-{i}", "aliases": [f"CVE-{i}"] * (i % 3), "affected": affected}
        if i == 8:
            del advisory["affected"]
        if i == 13:
            del affected[0]["versions"]
        yield advisory


def make(folder):
    rng = random.Random(22)
    sets = {"rooms": rooms, "products": products, "product_maps": product_maps,
            "advisories": advisories}
    encoded = {}
    for name, documents in sets.items():
        items = list(documents(rng))
        encoded[name] = [scan_figures.document(item.items()) for item in items]
        text = "".join(json.dumps(item) + "\n" for item in items).encode()
        data = b"".join(encoded[name])
        for path, content in ((f"{name}.ndjson", text), (f"{name}.ndjson.gz", text),
                              (f"{name}.json", json.dumps(items, indent=1).encode()),
                              (f"{name}.bson", data), (f"{name}.bson.gz", data),
                              (f"dump/shop/{name}.bson", data),
                              (f"dump/shop/{name}.metadata.json", b"{}")):
            scan_figures.write(f"{folder}/{path}", content)
    whole = scan_figures.archive(encoded)
    scan_figures.write(f"{folder}/shop.archive", whole)
    scan_figures.write(f"{folder}/shop.archive.gz", whole)
    scan_figures.write(f"{folder}/cut.archive", whole[:len(whole) // 2])


def real_rooms(data, path):
    gathered = {}
    with gzip.open(os.path.join(data, "gitter_chat/events.ndjson.gz"), "rt", encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            gathered.setdefault(event.pop("room"), []).append(event)
    with open(path, "w", encoding="utf-8") as out:
        for room, messages in gathered.items():
            out.write(json.dumps({"_id": room, "count": len(messages), "log": {"messages": messages}}))
            out.write("\n")


# ---- what the import should make -----------------------------------------------------------------

MISSING = object()


def at(document, path):
    for name in path.split("."):
        if not isinstance(document, dict) or name not in document:
            return MISSING
        document = document[name]
    return document


def entries(container, key):
    if key is None:
        return list(container)
    return [{key: name, **(value if isinstance(value, dict) else {"value": value})}
            for name, value in container.items()]


def arrays(document, options):
    """(owner, elements, document with the array) of each array in a document."""
    owner = at(document, options.owner)
    if not options.owner_inner:
        found = at(document, options.elements)
        yield owner, [] if found is MISSING else entries(found, options.entries_as), document
        return
    outer, path = options.elements.split(".$.")
    field, _, value_path = options.owner_inner.partition("=")
    container = at(document, outer)
    if container is MISSING:
        return
    inners = container.items() if isinstance(container, dict) else enumerate(container)
    for name, inner in inners:
        value = at(inner, value_path) if value_path else name
        found = at(inner, path)
        yield ({"_id": owner, field: value},
               [] if found is MISSING else entries(found, options.entries_as), inner)


def others(document, path):
    """The document without _id and without the array."""
    first, _, rest = path.partition(".")
    kept = {}
    for name, value in document.items():
        if name == first and not rest:
            continue
        if name == first and isinstance(value, dict):
            value = others(value, rest)
            if not value:
                continue
        if name != "_id":
            kept[name] = value
    return kept


# ---- the comparison ------------------------------------------------------------------------------


def plain(value):
    """The value with dates as milliseconds, and with fields in their order."""
    if isinstance(value, dict):
        if list(value) == ["$date"]:
            inner = value["$date"]
            if isinstance(inner, dict):
                inner = int(inner["$numberLong"])
            return ("date", scan_figures.milliseconds(inner))
        return [(name, plain(inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return ("array", [plain(inner) for inner in value])
    return value


def key(owner):
    return json.dumps(owner, sort_keys=True)


def check_elements(options):
    expected = {}
    for document in lines(options.source):
        for owner, elements, _ in arrays(document, options):
            if elements:
                expected.setdefault(key(owner), []).extend(
                    reversed(elements) if options.backwards else elements)
    got = {}
    for line in lines(options.export):
        got.setdefault(key(line["owner"]), []).append((line["seq"], line["element"]))
    if expected.keys() != got.keys():
        raise Wrong(f"owners: {sorted(expected.keys() ^ got.keys())[:5]} on one side only")
    count = 0
    for owner, elements in expected.items():
        if len(got[owner]) != len(elements):
            raise Wrong(f"{owner}: {len(got[owner])} elements, not {len(elements)}")
        for number, (element, (seq, found)) in enumerate(zip(elements, got[owner])):
            if seq != number or plain(element) != plain(found):
                raise Wrong(f"{owner}: {seq} is {found}, not {number}: {element}")
            count += 1
    print(f"{count} elements of {len(expected)} owners are equal")


def check_heads(options):
    heads = {}
    for line in lines(options.heads):
        if line["collection"] == options.collection:
            heads[key(line["document"]["_id"])] = line["document"]
    count = 0
    for document in lines(options.source):
        for owner, _, holder in arrays(document, options):
            path = options.elements.split(".$.")[-1]
            for name, value in others(holder, path).items():
                found = heads.get(key(owner), {}).get(name, MISSING)
                if found is MISSING or plain(found) != plain(value):
                    raise Wrong(f"head {owner}: {name} is {found}, not {value}")
                count += 1
    if count == 0:
        raise Wrong("no document has other fields")
    print(f"{count} other fields are equal")


def main():
    if sys.argv[1] == "make":
        make(sys.argv[2])
        return
    if sys.argv[1] == "rooms":
        real_rooms(sys.argv[2], sys.argv[3])
        return
    parser = argparse.ArgumentParser()
    for name in ("source", "export"):
        parser.add_argument(name)
    parser.add_argument("--elements", required=True)
    parser.add_argument("--owner", default="_id")
    for name in ("--entries-as", "--owner-inner", "--heads", "--collection"):
        parser.add_argument(name)
    parser.add_argument("--backwards", action="store_true")
    parser.add_argument("--fields", action="store_true")  # as for import; --heads checks them
    options = parser.parse_args(sys.argv[2:])
    try:
        check_elements(options)
        if options.heads:
            check_heads(options)
    except Wrong as wrong:
        sys.exit(f"elements.py: {wrong}")


if __name__ == "__main__":
    main()
