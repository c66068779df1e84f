"""test_migrate.py URI: migrate arrays while programs without Spillway write to them.

Each writer pushes to all documents, and edits and pulls its own elements in documents without pages.
The migration is killed and restarted many times. Then sweeps run while the writers continue. At the
end every array must have exactly the acknowledged changes, with each writer's elements in order.
With SPILLWAY_LONG it runs longer, with more writers.
"""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import time

import pymongo
from program import findings, spillway

URI = sys.argv[1]
LONG = bool(os.environ.get("SPILLWAY_LONG"))
OWNERS, WRITERS, KILLS = (60, 8, 20) if LONG else (24, 4, 6)
SEED = random.randrange(1 << 30)
THRESHOLD, PAGE = 40, 25


def make_plan():
    """Write a plan for the array `events`, with the bounds of this test."""
    spillway("define", f"{URI}", "scratch", "--preset", "feed-recent", "--threshold",
             str(THRESHOLD), "--page", str(PAGE), "--collection", "users", "--array", "events",
             "--page-collection", "users_events", "--count-field", "eventsCount",
             "--overflow-field", "eventsOverflow", "--pages-field", "eventsPages")
    database = pymongo.MongoClient(URI).get_default_database()
    entry = database["spillway.definitions"].find_one({"_id": "scratch"})["entry"]
    spillway("drop", URI, "scratch", "--yes")
    entry["name"] = "events"
    with open("plan.json", "w", encoding="utf-8") as file:
        json.dump({"spillwayPlan": 1, "source": "test",
                   "arrays": [{"collection": "users", "path": "events", "migrate": True,
                               "definition": entry}]}, file)


def element(writer, number):
    """An element: its writer, its number among the writer's elements, and a field to edit."""
    return {"id": f"{writer}.{number}", "w": writer, "k": number, "v": 0, "text": "x" * 60}


def write(writer, stop, result):
    """Push, edit and pull until `stop` is set. Puts {owner: {number: value}} of its own elements."""
    dice = random.Random(SEED + writer)
    users = pymongo.MongoClient(URI).get_default_database().users
    mine = {f"u{owner}": {k: 0 for k in range(owner * 12) if k % WRITERS == writer}
            for owner in range(OWNERS)}
    counts = {"push": 0, "edit": 0, "pull": 0}
    number = 1_000_000
    while not stop.is_set():
        owner = f"u{dice.randrange(OWNERS)}"
        own = mine[owner]
        what = dice.choice(("push", "push", "edit", "pull"))
        whole = {"_id": owner, "eventsPages": {"$exists": False}}
        if what == "push" or not own:
            done = users.update_one({"_id": owner},
                                    {"$push": {"events": element(writer, number)}})
            assert done.matched_count == 1
            own[number] = 0
            number += 1
            counts["push"] += 1
            continue
        chosen = dice.choice(list(own))
        whole["events.id"] = f"{writer}.{chosen}"
        if what == "edit":
            value = dice.randrange(3)
            done = users.update_one(whole, {"$set": {"events.$.v": value}})
            if done.matched_count == 1:
                own[chosen] = value
                counts["edit"] += 1
        else:
            done = users.update_one(whole,
                                    {"$pull": {"events": {"id": f"{writer}.{chosen}"}}})
            if done.matched_count == 1:
                del own[chosen]
                counts["pull"] += 1
    result.put((writer, mine, counts))


def fill(users):
    """Insert arrays of 0 to OWNERS * 12 elements, which belong to the writers in turn."""
    users.insert_many([{"_id": f"u{owner}", "name": f"user {owner}",
                        "events": [element(k % WRITERS, k) for k in range(owner * 12)]}
                       for owner in range(OWNERS)])


def unfinished(users):
    """The number of documents that are not migrated."""
    return users.count_documents({"events.0": {"$exists": True},
                                  "spill.events.epoch": {"$exists": False}})


def migrate_killed(users):
    """Start the migration and kill it, often enough; then let it end."""
    dice = random.Random(SEED)
    killed = 0
    while killed < KILLS:
        run = subprocess.Popen([os.environ["SPILLWAY"], "migrate", URI, "plan.json", "--execute",
                                "--quiet"] + (["--rate", "100"] if killed < KILLS - 1 else []),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            run.wait(0.2 + dice.random() * 0.5 if killed < KILLS - 1 else 0.1)
            assert run.returncode in (0, 1), run.stderr.read()
            break
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
            killed += 1
    left = unfinished(users)
    assert killed == KILLS, f"the migration ended after {killed} of {KILLS} kills"
    print(f"killed {killed} times, with {left} documents still to migrate")
    assert left > 0, "the last kill came after the last document"
    spillway("migrate", URI, "plan.json", "--execute", "--quiet", "--log", "moved.ndjson")


def arrays():
    """The logical arrays: {owner: [element...]}."""
    found = {}
    for line in spillway("export", URI, "events", "--relaxed", "--quiet").splitlines():
        row = json.loads(line)
        found.setdefault(row["owner"], []).append(row["element"])
    return found


def check(results):
    """Check that the arrays have exactly each writer's elements, in its order."""
    found = arrays()
    for owner in (f"u{owner}" for owner in range(OWNERS)):
        elements = found.get(owner, [])
        for writer, mine, _ in results:
            got = [(e["k"], e["v"]) for e in elements if e["w"] == writer]
            expected = sorted(mine[owner].items())
            assert got == expected, (f"seed {SEED}, {owner}, writer {writer}: {len(got)} elements "
                                     f"but {len(expected)} were acknowledged: "
                                     f"{sorted(set(got) ^ set(expected))[:5]}")
        assert len(elements) == sum(len(mine[owner]) for _, mine, _ in results)


def check_documents(users):
    """Check that heads are bounded and have the counts of their arrays."""
    found = arrays()
    for head in users.find({}):
        assert len(head.get("events", [])) < THRESHOLD + PAGE + 1
        assert head.get("eventsCount", 0) == len(found.get(head["_id"], [])), head["_id"]
        assert head["name"].startswith("user ")


def check_undone(users, results):
    """Check that --undo leaves the documents as if no migration had taken place."""
    found = arrays()
    spillway("migrate", URI, "plan.json", "--execute", "--undo", "--yes", "--quiet")
    for document in users.find({}):
        assert set(document) <= {"_id", "name", "events"}, sorted(document)
        assert document["events"] == found.get(document["_id"], []), document["_id"]
    names = users.database.list_collection_names()
    assert "users_events" not in names, "the empty page collection still exists"
    assert users.database["spillway.definitions"].count_documents({}) == 0
    spillway("migrate", URI, "plan.json", "--execute", "--undo", "--yes", "--quiet")


def big_array(length):
    return [element(0, k) for k in range(length)]


def check_obstacles(database):
    """Check fields of the application, unusual elements, and replaced documents."""
    users = database.users
    users.drop()
    database.users_events.drop()
    odd = [{"": 1, "a.b": 2, "$c": 3}] * 100
    users.insert_many([
        {"_id": "counts", "events": big_array(100), "eventsCount": 100},
        {"_id": "named", "events": big_array(100), "eventsPages": "mine"},
        {"_id": "spilled", "events": big_array(100), "spill": 7},
        {"_id": "odd", "events": odd},
        {"_id": "replaced", "events": big_array(100)}])
    before = {document["_id"]: document for document in users.find({})}
    spillway("migrate", URI, "plan.json", "--quiet", code=4)  # the dry run predicts "named"
    shown = spillway("migrate", URI, "plan.json", "--execute", "--quiet", code=1)
    reshaped = json.loads(shown.splitlines()[0])
    assert (reshaped["owners"], reshaped["adopted"], reshaped["failed"]) == (5, 3, 2), reshaped
    for owner in ("named", "spilled"):
        assert users.find_one({"_id": owner}) == before[owner], f"{owner} was changed"
    for owner in ("counts", "odd", "replaced"):
        assert len(users.find_one({"_id": owner})["events"]) < THRESHOLD + PAGE, owner
    assert users.find_one({"_id": "counts"})["eventsCount"] == 100

    # A program replaces a document with what it read before: the pages have the only copy then.
    kept = users.find_one({"_id": "replaced"})["events"]
    users.replace_one({"_id": "replaced"}, {"events": kept})
    pages = database.users_events.count_documents({"userId": "replaced"})
    spillway("sweep", URI, "events", "--quiet", code=1)
    spillway("migrate", URI, "plan.json", "--execute", "--undo", "--yes", "--quiet", code=1)
    assert database.users_events.count_documents({"userId": "replaced"}) == pages > 0
    assert database.users_events.count_documents({}) == pages
    assert users.find_one({"_id": "replaced"})["events"] == kept
    for owner in ("counts", "named", "spilled", "odd"):
        assert users.find_one({"_id": owner}) == before[owner], owner
    spillway("drop", URI, "events", "replaced", "--yes")
    assert database.users_events.count_documents({}) == 0


def check_pages_of_replaced_documents_stay(database):
    """Check that no pass deletes pages with the only copy, whatever the owner's document has."""
    users, pages = database.users, database.users_events
    for collection in (users, pages):
        collection.drop()
    users.insert_many([{"_id": owner, "events": big_array(200)}
                       for owner in ("trimmed", "bare", "again", "reopened")])
    spillway("migrate", URI, "plan.json", "--execute", "--quiet")
    spillway("trim", URI, "events", "trimmed", "--keep", "100")
    assert pages.count_documents({"_id": {"owner": "trimmed", "page": 0}}) == 0
    lowest = {"owner": "reopened", "page": 0}
    assert pages.update_one({"_id": lowest}, {"$set": {"spill.sealed": True, "spill.closed": True}}
                            ).matched_count == 1  # like a drop that was killed before it deleted the head
    users.replace_one({"_id": "trimmed"}, {"events": big_array(1)})
    for owner in ("bare", "again", "reopened"):
        users.replace_one({"_id": owner}, {"name": owner})
    spillway("append", URI, "events", "again", '{"w": 0, "k": 1}')
    before = {page["_id"]["owner"] + str(page["_id"]["page"]): page for page in pages.find({})}
    for command in (("sweep", URI, "events", "--quiet"),
                    ("migrate", URI, "plan.json", "--execute", "--quiet"),
                    ("repair", URI, "events"), ("verify", URI, "events"),
                    ("migrate", URI, "plan.json", "--execute", "--undo", "--yes", "--quiet")):
        messages = spillway(*command, code=1)
        after = {page["_id"]["owner"] + str(page["_id"]["page"]): page for page in pages.find({})}
        differ = [(key, before.get(key), after.get(key)) for key in sorted(set(before) | set(after))
                  if before.get(key) != after.get(key)]
        assert not differ, (command, str(differ)[:2000], messages)
    assert "spill" not in users.find_one({"_id": "again"})
    for owner in ("trimmed", "bare", "again", "reopened"):
        left = [(page["_id"], page.get("spill")) for page in pages.find({"_id.owner": owner})]
        try:
            spillway("drop", URI, "events", owner, "--yes")
        except AssertionError as failure:
            raise AssertionError(f"{failure}; before it, the pages were {left}") from failure
    assert pages.count_documents({}) == 0


def main():
    database = pymongo.MongoClient(URI).get_default_database()
    make_plan()
    fill(database.users)
    shown = spillway("migrate", URI, "plan.json", "--json")
    survey = json.loads(shown.splitlines()[0])
    assert survey["unmanaged"] == OWNERS - 1 and survey["elements"] == sum(
        12 * owner for owner in range(OWNERS)), survey
    assert "spillway.definitions" not in database.list_collection_names() or \
        database["spillway.definitions"].count_documents({}) == 0, "a dry run changed the database"
    stop, result = multiprocessing.Event(), multiprocessing.Queue()
    writers = [multiprocessing.Process(target=write, args=(writer, stop, result))
               for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        migrate_killed(database.users)
        for _ in range(3):
            spillway("sweep", URI, "events", "--quiet")
            time.sleep(0.3)
    finally:
        stop.set()
    results = [result.get(timeout=60) for _ in writers]
    for writer in writers:
        writer.join()
    check(results)
    spillway("sweep", URI, "events", "--quiet")
    check(results)
    assert findings(URI, "events") == 0
    check_documents(database.users)
    print({what: sum(counts[what] for _, _, counts in results) for what in results[0][2]})
    check_undone(database.users, results)
    check_obstacles(database)
    check_pages_of_replaced_documents_stay(database)


if __name__ == "__main__":
    main()
