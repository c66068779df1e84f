"""Push an array past 16 MB with pymongo. Usage: push.py URI [--pause]"""

import hashlib
import sys

from pymongo import DeleteOne, InsertOne, MongoClient, UpdateOne

ELEMENTS = 44
PAYLOAD = 1_000_000


def element(number):
    return {"n": number, "payload": chr(ord("a") + number % 26) * PAYLOAD}


def digest(elements):
    sha = hashlib.sha256()
    for item in elements:
        sha.update(f"{item['n']}:{item['payload']}".encode())
    return sha.hexdigest()


def push(feeds, first, end):
    for number in range(first, end):
        feeds.update_one({"_id": "long"}, {"$push": {"events": element(number)}}, upsert=True)


def main():
    client = MongoClient(sys.argv[1])
    feeds = client.get_default_database()["feeds"]
    push(feeds, 0, ELEMENTS // 2)
    if "--pause" in sys.argv:
        print("paused", flush=True)
        sys.stdin.readline()
        feeds.find_one({"_id": "none"})  # the driver repeats a read on a new connection
    push(feeds, ELEMENTS // 2, ELEMENTS)

    pushed = [element(number) for number in range(ELEMENTS)]
    events = feeds.find_one({"_id": "long"})["events"]
    assert digest(events) == digest(pushed), f"read {len(events)} elements that differ"

    feeds.insert_one({"_id": "gone"})
    small = [{"n": number, "payload": ""} for number in range(3)]
    result = feeds.bulk_write([
        InsertOne({"_id": "short", "events": []}),
        UpdateOne({"_id": "short"}, {"$push": {"events": {"$each": small}}}),
        UpdateOne({"_id": "long"},
                  {"$push": {"events": element(ELEMENTS)}, "$set": {"title": "long"}}),
        DeleteOne({"_id": "gone"}),
    ])
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (1, 2, 1), result
    assert feeds.find_one({"_id": "short"})["events"] == small
    assert feeds.find_one({"_id": "gone"}) is None

    long = feeds.find_one({"_id": "long"})
    assert long["title"] == "long"
    assert "spill" not in long, "bookkeeping is visible"
    print("elements", len(long["events"]), "sha256", digest(long["events"]))


if __name__ == "__main__":
    main()
