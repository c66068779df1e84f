#!/usr/bin/env python3
"""Prepare real data sets, and check a store against results computed from the raw files alone.

    real_layouts.py prepare DATA SET...     write the file to import (./SET.ndjson), and the owners
                                            with their counts, the largest first (./SET.owners)
    real_layouts.py check DATA SET LAYOUT [--value FIELD] [--summary FIELD AVERAGE]
                    [--elements FILE] [--documents FILE] [--statistics FILE]...

A SET is one of SETS. The files have the output of `export`, `export --documents --plain` and `stats
--json`. If SPILLWAY_EACH is N, only every Nth line of a raw file is used. A failing check prints the
place and exits with 1.
"""
import datetime
import gzip
import itertools
import json
import os
import sys

TOP = 5  # elements in the head, layout subset
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Wrong(Exception):
    """The store differs from the raw file."""


def lines(data, path):
    """The documents of a raw file."""
    each = int(os.environ.get("SPILLWAY_EACH") or 1)
    with gzip.open(os.path.join(data, path), "rt", encoding="utf-8") as file:
        for line in itertools.islice(file, each - 1, None, each):
            yield json.loads(line)


# ---- the files to import -------------------------------------------------------------------------


def message(event):
    return {name: value for name, value in event.items() if name != "_id"}


def advisory(event):
    """An advisory with a time of one type and with a number: the source has times of two types,
    and no numbers."""
    affected = event["affected"][0]
    time = event.get("published", event["modified"])
    record = {name: value for name, value in event.items() if name != "_id"}
    record["package"] = affected["package"]["name"]
    record["versionCount"] = len(affected.get("versions", []))
    if not isinstance(time, dict):
        whole, _, fraction = time.rstrip("Z").partition(".")
        time = {"$date": f"{whole}.{fraction:0<3.3}Z"}
    record["publishedAt"] = time
    return record


# SET: the raw file, the document made of a line, the owner field, the window.
CHAT = "gitter_chat/events.ndjson.gz"
SETS = {
    "edits": (
        "wiki_edits/events.ndjson.gz",
        lambda event: event,
        "channel",
        lambda edit: edit["at"]["$date"][:13],
    ),
    "room": (CHAT, message, "room", None),
    "user": (CHAT, message, "user", None),
    "advisories": (
        "pypa_advisories/advisories.ndjson.gz",
        advisory,
        "package",
        lambda record: record["publishedAt"]["$date"][:4],
    ),
}


def prepare(data, chosen):
    path, record_of, owner_field, _ = SETS[chosen]
    lengths = {}
    with open(f"{chosen}.ndjson", "w", encoding="utf-8") as file:
        for event in lines(data, path):
            record = record_of(event)
            owner = json.dumps(record[owner_field])
            lengths[owner] = lengths.get(owner, 0) + 1
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    with open(f"{chosen}.owners", "w", encoding="utf-8") as file:
        for owner in sorted(lengths, key=lambda owner: (-lengths[owner], owner)):
            file.write(f"{owner}\t{lengths[owner]}\n")


# ---- expected results ----------------------------------------------------------------------------


def milliseconds(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - EPOCH) // datetime.timedelta(milliseconds=1)


def canonical(value):
    """Canonical Extended JSON of a value. Integers that fit have 32 bits, as in the store."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        small = -(2**31) <= value < 2**31
        return {"$numberInt" if small else "$numberLong": str(value)}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if list(value) == ["$date"]:
        return {"$date": {"$numberLong": str(milliseconds(value["$date"]))}}
    return {name: canonical(item) for name, item in value.items()}


def number(value):
    """The Python value of canonical Extended JSON."""
    if isinstance(value, dict):
        for name, kind in (("$numberInt", int), ("$numberLong", int), ("$numberDouble", float)):
            if list(value) == [name]:
                return kind(value[name])
    return value


class Expected:
    """The elements of each owner, or of each of its windows, in order, as text to compare."""

    def __init__(self, data, chosen, layout, value_field):
        path, record_of, self.owner_field, window_of = SETS[chosen]
        self.layout = layout
        self.arrays = {}
        self.values = {}
        for event in lines(data, path):
            record = record_of(event)
            key = (json.dumps(record[self.owner_field]),)
            if layout == "bucket":
                key += (window_of(record),)
            if layout in ("reference", "subset"):  # the owner is a field of the document already
                del record[self.owner_field]
            self.arrays.setdefault(key, []).append(json.dumps(canonical(record)))
            if value_field:
                self.values.setdefault(key, []).append(record[value_field])


def statistics(values):
    """Statistics of integers, computed exactly. The average is one division of the exact sum."""
    total = sum(values)
    return {
        "count": len(values),
        "values": len(values),
        "sum": total,
        "average": total / len(values),
        "min": min(values),
        "max": max(values),
    }


# ---- elements ------------------------------------------------------------------------------------


def rows(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def compare(what, got, expected):
    if got != expected:
        raise Wrong(f"{what}: {got!r:.300} is not {expected!r:.300}")


def check_elements(expected, path):
    """Check that every array has exactly its elements, at their numbers."""
    met = {key: 0 for key in expected.arrays}
    for row in rows(path):
        key = (json.dumps(row["owner"]),) + ((row["window"],) if "window" in row else ())
        seq = met.get(key)
        if seq is None or seq == len(expected.arrays[key]):
            raise Wrong(f"{key}: an element that is not in the file: {row}")
        compare(f"{key}, number", row["seq"], seq)
        compare(f"{key}, {seq}", json.dumps(row["element"]), expected.arrays[key][seq])
        met[key] = seq + 1
    for key, count in met.items():
        compare(f"{key}: elements", count, len(expected.arrays[key]))
    return sum(met.values())


# ---- documents -----------------------------------------------------------------------------------


def match_next(expected, met, key, elements):
    """Compare an array's next elements with these, and return the range of values that they have."""
    if key not in expected.arrays:
        raise Wrong(f"{key}: the file has no such array")
    start = met.get(key, 0)
    got = [json.dumps(element) for element in elements]
    compare(f"{key}, from {start} on", got, expected.arrays[key][start : start + len(got)])
    met[key] = start + len(got)
    return expected.values.get(key, [])[start : start + len(got)]


def bucket_document(expected, met, document, _):
    """Check a part of a window: the document has its elements and their statistics."""
    key = (json.dumps(document["owner"]), document["window"])
    want = statistics(match_next(expected, met, key, document["elements"]))
    del want["values"]
    stats = {name: number(value) for name, value in document["stats"].items()}
    compare(f"{key}, statistics of a part", stats, want)


def reference_document(expected, met, document, summary):
    """Check a head with its summary, or the document of one element."""
    if "_id" not in document:
        key = (json.dumps(document.pop(expected.owner_field)),)
        match_next(expected, met, key, [document])
        return
    key = (json.dumps(document["_id"]),)
    want = statistics(expected.values[key])
    field, average = summary
    if expected.layout == "subset":
        top = [json.dumps(element) for element in document[field].pop("top")]
        compare(f"{key}, the newest in the head", top, expected.arrays[key][: -TOP - 1 : -1])
    got = {name: number(value) for name, value in document[field].items()}
    compare(f"{key}, summary", got, {"totalCount": want["count"], average: want["average"]})


def check_documents(expected, layout, path, summary):
    visit = bucket_document if layout == "bucket" else reference_document
    met = {}
    count = 0
    for row in rows(path):
        visit(expected, met, row["document"], summary)
        count += 1
    for key, array in expected.arrays.items():
        compare(f"{key}: elements of documents", met.get(key, 0), len(array))
    return count


# ---- statistics ----------------------------------------------------------------------------------


def check_statistics(expected, path):
    """Check the windows of one owner, each once and in order, followed by their total."""
    found = list(rows(path))
    owner = json.dumps(found[-1]["owner"])
    windows = sorted(key[1] for key in expected.arrays if key[0] == owner)
    compare(f"{owner}: windows", [row.get("window") for row in found[:-1]], windows)
    values = [expected.values[owner, window] for window in windows]
    wanted = [statistics(part) for part in values] + [statistics(sum(values, []))]
    for row, want in zip(found, wanted):
        got = {name: row[name] for name in want}
        compare(f"{owner}, {row.get('window', 'all windows')}", got, want)
    compare(f"{owner}: how many windows", found[-1]["windows"], len(windows))


# ---- main ----------------------------------------------------------------------------------------


def check(data, chosen, layout, arguments):
    value_field, summary, given = None, None, []
    while arguments:
        option = arguments.pop(0)
        if option == "--value":
            value_field = arguments.pop(0)
        elif option == "--summary":
            summary = (arguments.pop(0), arguments.pop(0))
        else:
            given.append((option, arguments.pop(0)))
    expected = Expected(data, chosen, layout, value_field)
    checked = []
    for option, path in given:
        if option == "--elements":
            checked.append(f"{check_elements(expected, path)} elements")
        elif option == "--documents":
            checked.append(f"{check_documents(expected, layout, path, summary)} documents")
        else:
            check_statistics(expected, path)
    print(f"{chosen}, {layout}: {len(expected.arrays)} arrays, {', '.join(checked)} as in the file")


def main(command, data, *arguments):
    if command == "prepare":
        for chosen in arguments:
            prepare(data, chosen)
    else:
        check(data, arguments[0], arguments[1], list(arguments[2:]))


try:
    main(*sys.argv[1:])
except Wrong as wrong:
    sys.exit(str(wrong))
