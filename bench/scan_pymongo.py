#!/usr/bin/env python3
"""Compute the lengths and sizes that a scan reports with pymongo, as scripts do, for comparison.

    bench/scan_pymongo.py FILE.bson [MEGABYTES]

Reads the first MEGABYTES, and prints the speed and the figures.
"""

import sys
import time

import bson


def arrays(value, path):
    if isinstance(value, dict):
        for name, item in value.items():
            yield from arrays(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield path, value
        for item in value:
            yield from arrays(item, f"{path}[]")


def main():
    limit = float(sys.argv[2]) * 1e6 if len(sys.argv) > 2 else float("inf")
    lengths, sizes, largest = {}, [], {}
    done, began = 0, time.monotonic()
    with open(sys.argv[1], "rb") as file:
        while done < limit and len(head := file.read(4)) == 4:
            size = int.from_bytes(head, "little")
            document = bson.decode(head + file.read(size - 4))
            sizes.append(size)
            done += size
            for path, array in arrays(document, ""):
                lengths.setdefault(path, []).append(len(array))
                size_of = len(bson.encode({"": array})) - 7
                largest[path] = max(largest.get(path, (0, 0)), (len(array), size_of))
    seconds = time.monotonic() - began
    print(f"{done / 1e6 / seconds:.1f} MB/s: {done} bytes in {seconds:.1f} s, "
          f"C extension: {bson.has_c()}")
    print(f"{len(sizes)} documents, largest {max(sizes)}")
    for path, found in lengths.items():
        found.sort()
        print(f"{path}: {len(found)} arrays, half {found[(len(found) - 1) // 2]} or fewer, "
              f"longest {found[-1]} with {largest[path][1]} bytes")


main()
