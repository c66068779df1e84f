"""check_bounded.py URI ELEMENTS ANSWER: look at the server itself after a program of examples/drivers.

ELEMENTS is the long array as `spillway export` writes it, ANSWER the program's last line. No document of
the database may exceed the preset's bound.
"""

import hashlib
import json
import sys

import pymongo
from bson.raw_bson import RawBSONDocument

BOUND = 16 * 1024 * 1024


def number(value):
    return int(value["$numberInt"]) if isinstance(value, dict) else value


def main():
    uri, path, answer = sys.argv[1:]
    sha = hashlib.sha256()
    count = 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            element = json.loads(line)["element"]
            sha.update(f"{number(element['n'])}:{element['payload']}".encode())
            count += 1
    expected = f"elements {count} sha256 {sha.hexdigest()}"
    assert count == 45, f"{count} elements are stored"
    assert answer == expected, f"the program read {answer}, stored are {expected}"

    client = pymongo.MongoClient(uri, document_class=RawBSONDocument)
    database = client.get_default_database()
    sizes = {}
    for name in database.list_collection_names():
        for document in database[name].find():
            sizes[name] = max(sizes.get(name, 0), len(document.raw))
    assert max(sizes.values()) <= BOUND, f"a document exceeds {BOUND} bytes: {sizes}"
    assert len(sizes) >= 2, f"there are no pages: {sizes}"


if __name__ == "__main__":
    main()
