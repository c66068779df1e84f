"""check_bounded.py URI ELEMENTS ANSWER: look at the server itself after a program of examples/drivers.

ELEMENTS is the long array as `spillway export` writes it, ANSWER the program's last line. No document may exceed the
bound that the definition has for its collection.
"""

import hashlib
import json
import sys

import pymongo
from bson.raw_bson import RawBSONDocument

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
    stored = pymongo.MongoClient(uri).get_default_database()["spillway.definitions"].find_one()["entry"]
    for name, bound in ((stored["collection"], "headBytesMax"), (stored["pageCollection"], "pageBytesMax")):
        most = stored["bounds"][bound]
        assert 0 < sizes[name] <= most, f"a document in {name} has {sizes[name]} bytes, {bound} is {most}"
        print(f"{name}: the largest document has {sizes[name]} of at most {most} bytes")


if __name__ == "__main__":
    main()
