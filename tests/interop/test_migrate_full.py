"""test_migrate_full.py URI: migrate documents at the server's size limit.

Every $push to them fails. They are migrated while programs without Spillway continue to push and
edit. Afterwards pushes succeed, and every element exists, in order. --undo is refused while a copy
may still be needed, and prints until when. With SPILLWAY_LONG the documents have the limit less 0,
100 and 200 bytes, the test waits until undo is allowed, and --undo must restore the same documents,
byte for byte.
"""

import json
import multiprocessing
import os
import re
import subprocess
import sys
import time

import bson
import pymongo
from program import findings, spillway
from test_migrate import arrays, make_plan

URI = sys.argv[1]
LONG = bool(os.environ.get("SPILLWAY_LONG"))
LIMIT, LENGTH, TEXT = 16 * 1024 * 1024, 700, 23_000
SLACKS = (0, 100, 200) if LONG else (0,)


def element(number):
    """An element of the arrays."""
    return {"k": number, "v": 0, "text": chr(97 + number % 26) * TEXT}


def make(users, slack):
    """Insert a document of the limit less `slack` bytes; another field fills it up."""
    document = {"_id": f"u{slack}", "pad": "",
                "events": [element(number) for number in range(LENGTH)]}
    document["pad"] = "p" * (LIMIT - slack - len(bson.encode(document)))
    assert len(bson.encode(document)) == LIMIT - slack
    users.insert_one(document)


def write(slack, stop, result):
    """Push repeatedly and edit the last element in place. Puts the acknowledged changes."""
    users = pymongo.MongoClient(URI).get_default_database().users
    pushed, refused, edits = [], 0, 0
    number = LENGTH
    while not stop.is_set() or not pushed:
        try:
            done = users.update_one({"_id": f"u{slack}"}, {"$push": {"events": element(number)}})
            assert done.matched_count == 1
            pushed.append(number)
            number += 1
        except pymongo.errors.WriteError:
            refused += 1
        if not pushed:
            done = users.update_one({"_id": f"u{slack}", "eventsPages": {"$exists": False},
                                     "events.k": LENGTH - 1}, {"$set": {"events.$.v": edits + 1}})
            edits += done.matched_count
        time.sleep(0.05)
    result.put((slack, pushed, refused, edits))


def check(results):
    """Check that every element exists once, in order."""
    found = arrays()
    for slack, pushed, refused, edits in results:
        got = [(e["k"], e["v"]) for e in found[f"u{slack}"]]
        expected = [(number, 0) for number in range(LENGTH - 1)] + [(LENGTH - 1, edits)]
        assert got == expected + [(number, 0) for number in pushed], f"u{slack}"
        assert all(e["text"] == chr(97 + e["k"] % 26) * TEXT for e in found[f"u{slack}"])
        assert refused > 0 and pushed, (slack, refused, len(pushed))
        print(f"u{slack}: {refused} pushes refused, {edits} edits, then {len(pushed)} pushes")


def undo(code):
    """Run migrate --undo and return its messages."""
    run = subprocess.run([os.environ["SPILLWAY"], "migrate", URI, "plan.json", "--execute",
                          "--undo", "--yes", "--quiet"], capture_output=True, text=True,
                         check=False)
    assert run.returncode == code, run.stderr
    return run.stderr


def check_undo(users, slacks):
    """Check that undo is refused until the copies' leases end, and then restores the same bytes."""
    before = {f"u{slack}": users.find_one({"_id": f"u{slack}"}) for slack in slacks}
    messages = undo(4)
    assert len(re.findall(r"before \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", messages)) == len(slacks), messages
    for owner, document in before.items():
        assert users.find_one({"_id": owner}) == document
    deadline = time.time() + 400
    while re.search(r"before \d{4}", messages) and time.time() < deadline:
        time.sleep(10)
        run = subprocess.run([os.environ["SPILLWAY"], "migrate", URI, "plan.json", "--undo",
                              "--quiet"], capture_output=True, text=True, check=False)
        messages = run.stderr
    undo(0)
    for slack in slacks:
        document = users.find_one({"_id": f"u{slack}"})
        assert set(document) == {"_id", "pad", "events"}, sorted(document)
        assert document["events"] == [element(number) for number in range(LENGTH)]
        assert len(bson.encode(document)) == LIMIT - slack
    assert users.database.users_events.count_documents({}) == 0
    print("undone, byte for byte")


def main():
    """Fill, write, migrate, compare; then migrate documents without writers, and undo."""
    users = pymongo.MongoClient(URI).get_default_database().users
    make_plan()
    for slack in SLACKS:
        make(users, slack)
    survey = json.loads(spillway("migrate", URI, "plan.json", "--json").splitlines()[0])
    assert survey["full"] == survey["unmanaged"] == len(SLACKS), survey
    stop, result = multiprocessing.Event(), multiprocessing.Queue()
    writers = [multiprocessing.Process(target=write, args=(slack, stop, result))
               for slack in SLACKS]
    for writer in writers:
        writer.start()
    done = json.loads(spillway("migrate", URI, "plan.json", "--execute", "--quiet").splitlines()[0])
    assert done["full"] == survey["full"] and done["failed"] == 0, (survey, done)
    stop.set()
    results = [result.get(timeout=60) for _ in writers]
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    spillway("sweep", URI, "events", "--quiet")
    check(results)
    assert findings(URI, "events") == 0

    if not LONG:
        assert re.search(r"before \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", undo(4))
        return

    # Without pushes the undone documents fit in the limit again.
    for slack in SLACKS:
        users.delete_one({"_id": f"u{slack}"})
    users.database.users_events.drop()
    spillway("sweep", URI, "events", "--quiet")
    for slack in SLACKS[:2]:
        make(users, slack)
    spillway("migrate", URI, "plan.json", "--execute", "--quiet")
    assert findings(URI, "events") == 0
    check_undo(users, SLACKS[:2])


if __name__ == "__main__":
    main()
