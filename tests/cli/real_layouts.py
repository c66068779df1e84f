#!/usr/bin/env python3
"""Real data sets, and what a store has to have of them, computed from the raw files alone.

    real_layouts.py prepare DATA SET...     write what is imported (./SET.ndjson), and the owners,
                                            those who have most first, with how much (./SET.owners)
    real_layouts.py check DATA SET LAYOUT [--value FIELD] [--summary FIELD AVERAGE]
                    [--elements FILE] [--documents FILE] [--statistics FILE]...

A SET is one of SETS. The files are what `export`, `export --documents --plain` and `stats --json`
printed. SPILLWAY_EACH: only each line of a file whose number is a multiple of it. A check that
fails says where, and ends with 1.
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
    """The store has something else than the raw file."""


def lines(data, path):
    """The documents of a raw file."""
    each = int(os.environ.get("SPILLWAY_EACH") or 1)
    with gzip.open(os.path.join(data, path), "rt", encoding="utf-8") as file:
        for line in itertools.islice(file, each - 1, None, each):
            yield json.loads(line)


# ---- what is imported ----------------------------------------------------------------------------


def message(event):
    return {name: value for name, value in event.items() if name != "_id"}


def advisory(event):
    """One of its package, with a time and a number of its own: in the source times are of two
    types, and there is no number."""
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


# SET: the raw file, what of a line is imported, the field that names the owner, the window.
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


# ---- what is expected ----------------------------------------------------------------------------


def milliseconds(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - EPOCH) // datetime.timedelta(milliseconds=1)


def canonical(value):
    """Canonical Extended JSON of a value: 32-bit integers where they fit, as they are stored."""
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
    """What stands in canonical Extended JSON, as Python has it."""
    if isinstance(value, dict):
        for name, kind in (("$numberInt", int), ("$numberLong", int), ("$numberDouble", float)):
            if list(value) == [name]:
                return kind(value[name])
    return value


class Expected:
    """The elements of each owner, or of each of its windows, in order; as text, to be compared."""

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
            if layout in ("apart", "subset"):  # the owner is a field of the document already
                del record[self.owner_field]
            self.arrays.setdefault(key, []).append(json.dumps(canonical(record)))
            if value_field:
                self.values.setdefault(key, []).append(record[value_field])


def statistics(values):
    """Of integers, exactly. An average is one division of the exact sum."""
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
    """Every element of every array, at its number, and nothing more."""
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


def take(expected, met, key, elements):
    """The next elements of an array are these; which of its values they have."""
    if key not in expected.arrays:
        raise Wrong(f"{key}: there is no such array in the file")
    start = met.get(key, 0)
    got = [json.dumps(element) for element in elements]
    compare(f"{key}, from {start} on", got, expected.arrays[key][start : start + len(got)])
    met[key] = start + len(got)
    return expected.values.get(key, [])[start : start + len(got)]


def bucket_document(expected, met, document, _):
    """A part of a window: its statistics are those of its elements, in the same document."""
    key = (json.dumps(document["owner"]), document["window"])
    want = statistics(take(expected, met, key, document["elements"]))
    del want["values"]
    stats = {name: number(value) for name, value in document["stats"].items()}
    compare(f"{key}, statistics of a part", stats, want)


def apart_document(expected, met, document, summary):
    """A head with its summary, or the document of one element."""
    if "_id" not in document:
        key = (json.dumps(document.pop(expected.owner_field)),)
        take(expected, met, key, [document])
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
    visit = bucket_document if layout == "bucket" else apart_document
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
    """The windows of one owner, each once and in order, and at last all of them together."""
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
    said = []
    for option, path in given:
        if option == "--elements":
            said.append(f"{check_elements(expected, path)} elements")
        elif option == "--documents":
            said.append(f"{check_documents(expected, layout, path, summary)} documents")
        else:
            check_statistics(expected, path)
    print(f"{chosen}, {layout}: {len(expected.arrays)} arrays, {', '.join(said)} as in the file")


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
