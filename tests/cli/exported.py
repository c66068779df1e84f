#!/usr/bin/env python3
"""Compare an export with the records that were imported, element by element.

    exported.py SOURCE EXPORT --owner FIELD [--elements FIELD [--entries-as KEY]] [--newest N]
                [--window month|FIELD]

SOURCE has records (NDJSON, also .gz), EXPORT is the output of `export --relaxed`. With --elements the
records are documents, and the elements those of an array in them, or the entries of a map. --newest: the array keeps the newest
N elements. --window: the array has windows by the month of `at`, or by a field of the element; numbers
then count within a window. Exits with 1 at the first difference.
"""
import argparse
import datetime
import sys

import elements
import scan_figures


def window_of(element, window):
    if window != "month":
        return str(element[window])
    at = scan_figures.milliseconds(element["at"]["$date"]) / 1000
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m")


def expected_of(options):
    """The elements of each owner, or of each window of one, in order."""
    expected = {}
    for record in elements.lines(options.source):
        whole = [record] if not options.elements else record.get(options.elements, [])
        whole = elements.entries(whole, options.entries_as) if options.elements else whole
        for element in whole:
            key = (elements.key(record[options.owner]),
                   window_of(element, options.window) if options.window else None)
            expected.setdefault(key, []).append(element)
    return expected


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "export"):
        parser.add_argument(name)
    parser.add_argument("--owner", required=True)
    parser.add_argument("--newest", type=int)
    for name in ("--elements", "--window", "--entries-as"):
        parser.add_argument(name)
    options = parser.parse_args()
    expected = expected_of(options)
    got = {}
    for line in elements.lines(options.export):
        key = (elements.key(line["owner"]), line.get("window"))
        got.setdefault(key, []).append((line["seq"], line["element"]))
    if expected.keys() != got.keys():
        sys.exit(f"owners: {sorted(map(str, expected.keys() ^ got.keys()))[:5]} on one side only")
    count = 0
    for key, all_of in expected.items():
        first = max(0, len(all_of) - options.newest) if options.newest else 0
        if len(got[key]) != len(all_of) - first:
            sys.exit(f"{key}: {len(got[key])} elements, not {len(all_of) - first}")
        for number, (seq, found) in enumerate(got[key], first):
            if seq != number or elements.plain(found) != elements.plain(all_of[number]):
                sys.exit(f"{key}: {seq} is {found}, not {number}: {all_of[number]}")
            count += 1
    if count == 0:
        sys.exit("there are no elements")
    print(f"{count} elements of {len(expected)} owners are equal")


if __name__ == "__main__":
    main()
