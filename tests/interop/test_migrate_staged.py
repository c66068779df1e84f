"""test_migrate_staged.py URI SET: migrate arrays to another layout in two stages, while programs
without Spillway write to them.

Each writer pushes to all documents, and edits and pulls its own elements in documents without pages.
The migration is killed and restarted, each time before it is complete. Then sweeps run while the
writers continue. After the writers stop, the migration is finished. At the end every array must have
exactly the acknowledged changes, with each writer's elements in order.

SET is "small", or the name of a data set in $SPILLWAY_DATA.
"""

import datetime
import gzip
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time

import pymongo
from program import findings, spillway

URI, SET = sys.argv[1], sys.argv[2]
LONG = "SPILLWAY_LONG" in os.environ
WRITERS, KILLS, OWNERS = (8, 20, 40) if LONG else (3, 4, 16)  # owners of SET small
PAUSE_S = 0.03  # a writer's pause between two changes
SEED = random.randrange(1 << 30)
# For each set: the source of the arrays, the layout, and whether they grow at the front.
SETS = {"small": (None, "subset", False),
        "openstack_updates": ("project", "oldest", False),
        "gitter_chat": ("room", "bucket", False),
        "eol_releases": (None, "reference", True)}
FIELD, LAYOUT, FRONT = SETS[SET]
THRESHOLD, PAGE = (40, 25) if SET == "small" else (100, 100)
START = datetime.datetime(2020, 1, 1)


def stream(owner_field):
    """The feeds of an event stream: {owner: [event...]}."""
    found = {}
    path = os.path.join(os.environ["SPILLWAY_DATA"], SET, "events.ndjson.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            event["at"] = datetime.datetime.fromisoformat(event["at"]["$date"].rstrip("Z"))
            found.setdefault(event.pop(owner_field), []).append(event)
    return found


def feeds():
    """The arrays, oldest first: {owner: [element...]}."""
    if SET == "small":
        return {f"u{owner}": [{"at": START + datetime.timedelta(days=k), "text": "x" * 60}
                              for k in range(owner * 12)] for owner in range(OWNERS)}
    if FIELD:
        return stream(FIELD)
    path = os.path.join(os.environ["SPILLWAY_DATA"], SET, "products_array.ndjson.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {product["_id"]: product["versions"][::-1] for product in map(json.loads, lines)}


def own(element, writer, number):
    """The element with its writer, a number among the writer's elements, and an _id like mongoose's."""
    return {"_id": f"of {writer}.{number}", **element, "id": f"{writer}.{number}", "w": writer,
            "k": number, "v": 0}


def window(element):
    """The element's window, with layout bucket."""
    return element["at"].strftime("%Y-%m") if LAYOUT == "bucket" else ""


def fill(users):
    """Insert the documents. Elements belong to the writers in turn. Returns each writer's elements."""
    mine = [{} for _ in range(WRITERS)]
    for owner, elements in feeds().items():
        elements = [own(element, k % WRITERS, k) for k, element in enumerate(elements)]
        for writer in range(WRITERS):
            mine[writer][owner] = {element["k"]: (0, window(element)) for element in elements
                                   if element["w"] == writer}
        users.insert_one({"_id": owner, "name": f"user {owner}",
                          "events": elements[::-1] if FRONT else elements})
    return mine


def make_plan():
    """Write a plan for the array `events`."""
    options = {
        "subset": ["--preset", "reviews-subset", "--array", "eventsSummary", "--time-field", ""],
        "reference": ["--preset", "reviews-separate", "--array", "eventsSummary", "--time-field",
                      ""],
        "oldest": ["--preset", "feed", "--array", "eventsOldest", "--threshold", "100", "--page",
                   "200", "--count-field", "eventsCount", "--overflow-field", "eventsOverflow",
                   "--pages-field", "eventsOldestPages"],
        "bucket": ["--preset", "reviews-bucket", "--time-field", "at", "--value-field", "",
                   "--stats-average", "", "--stats-sum", "", "--stats-min", "", "--stats-max", ""],
    }[LAYOUT]
    collection = "windows" if LAYOUT == "bucket" else "users"
    pages = [] if LAYOUT == "bucket" else ["--page-collection", "users_events"]
    entries = []
    for name, given in (
            ("events", [*options, "--collection", collection, *pages]),
            ("plain", ["--preset", "feed-recent", "--threshold", str(THRESHOLD), "--page",
                       str(PAGE), "--collection", "users", "--array", "events",
                       "--page-collection", "events.original", "--count-field", "",
                       "--overflow-field", "", "--pages-field", "eventsPages",
                       *(["--order", "newest-first"] if FRONT else [])])):
        spillway("define", URI, name, *given)
        entries.append(pymongo.MongoClient(URI).get_default_database()
                       ["spillway.definitions"].find_one({"_id": name})["entry"])
        spillway("drop", URI, name, "--yes")
    entries[1]["name"] = "events.original"
    with open("plan.json", "w", encoding="utf-8") as file:
        json.dump({"spillwayPlan": 1, "source": "test",
                   "arrays": [{"collection": "users", "path": "events", "migrate": True,
                               "definition": entries[0], "original": entries[1]}]}, file)


def write(writer, owners, mine, stop, result):
    """Push, edit and pull until `stop` is set. Puts {owner: {number: value}} of its own elements."""
    dice = random.Random(SEED + writer)
    users = pymongo.MongoClient(URI).get_default_database().users
    counts = {"push": 0, "edit": 0, "pull": 0}
    number = 1_000_000
    while not stop.wait(PAUSE_S):
        owner = dice.choice(owners)
        have = mine[owner]
        what = dice.choice(("push", "push", "edit", "pull"))
        if what == "push" or not have:
            element = own({"at": START + datetime.timedelta(hours=number - 1_000_000),
                           "text": "pushed"}, writer, number)
            how = {"$each": [element], "$position": 0} if FRONT else element
            done = users.update_one({"_id": owner}, {"$push": {"events": how}})
            assert done.matched_count == 1
            have[number] = (0, window(element))
            number += 1
            counts["push"] += 1
            continue
        chosen = dice.choice(list(have))
        whole = {"_id": owner, "eventsPages": {"$exists": False},
                 "events.id": f"{writer}.{chosen}"}
        if what == "edit":
            value = dice.randrange(3)
            done = users.update_one(whole, {"$set": {"events.$.v": value}})
            if done.matched_count == 1:
                have[chosen] = (value, have[chosen][1])
                counts["edit"] += 1
        else:
            done = users.update_one(whole, {"$pull": {"events": {"id": f"{writer}.{chosen}"}}})
            if done.matched_count == 1:
                del have[chosen]
                counts["pull"] += 1
    result.put((writer, mine, counts))


def progress():
    """How many steps the log has: each owner is adopted ("adopted") and copied ("caughtUp")."""
    done = set()
    with open("moved.ndjson", encoding="utf-8") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:  # a line that a kill cut off
                continue
            if row["event"] == "owner" and (row.get("adopted") or row.get("caughtUp")):
                done.add((json.dumps(row["owner"]), row.get("caughtUp", False)))
    return len(done)


def migrate_killed(owners):
    """Start the migration and kill it, each time after more steps, and never after the last step."""
    with open("moved.ndjson", "w", encoding="utf-8"):
        pass
    total = 2 * owners
    for kill in range(1, KILLS + 1):
        run = subprocess.Popen([os.environ["SPILLWAY"], "migrate", URI, "plan.json", "--execute",
                                "--quiet", "--log", "moved.ndjson"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while run.poll() is None and progress() < total * kill // (KILLS + 3):
            time.sleep(0.01)
        assert run.poll() is None, (f"the migration ended before kill {kill}, with {run.returncode}: "
                                    f"{run.stderr.read()}")
        run.kill()
        run.wait()
        left = total - progress()
        assert left > 0, "the kill came after the last step"
    print(f"killed {KILLS} times; then {left} of {total} steps were left")


def repeat_until_caught_up(*command):
    """Repeat the command until it does not report that an owner changes as fast as it is copied."""
    for _ in range(20):
        run = subprocess.run([os.environ["SPILLWAY"], *command, "--quiet"], text=True,
                             capture_output=True, check=False)
        assert run.returncode in (0, 1), run.stderr
        if run.returncode == 0:
            return
        assert "changes as fast as it is copied" in run.stderr, run.stderr
    raise AssertionError(run.stderr)


def check(results, owners):
    """Check that the arrays have exactly each writer's elements, in its order."""
    found = {owner: {writer: [] for writer in range(WRITERS)} for owner in owners}
    total = 0
    for line in spillway("export", URI, "events", "--relaxed", "--quiet").splitlines():
        row = json.loads(line)
        element = row["element"]
        assert element["_id"] == f"of {element['id']}", element
        found[row["owner"]][element["w"]].append((element["k"], element["v"]))
        total += 1
    for writer, mine, _ in results:
        for owner in owners:
            in_order = sorted(mine[owner].items(), key=lambda item: (item[1][1], item[0]))
            expected = [(number, value) for number, (value, _) in in_order]
            got = found[owner][writer]
            assert got == expected, (f"seed {SEED}, {owner}, writer {writer}: {len(got)} elements "
                                     f"but {len(expected)} were acknowledged: "
                                     f"{sorted(set(got) ^ set(expected))[:5]}")
    assert total == sum(len(have) for _, mine, _ in results for have in mine.values())
    return total


def check_documents(users):
    """Check that the application's documents no longer have the array, and are otherwise unchanged."""
    for document in users.find({}, {"events": 1, "name": 1, "eventsPages": 1, "spill.events": 1}):
        assert document["name"] == f"user {document['_id']}"
        assert "events" not in document and "eventsPages" not in document, document["_id"]
        assert "events" not in document.get("spill", {}), document["_id"]


def main():
    database = pymongo.MongoClient(URI).get_default_database()
    make_plan()
    mine = fill(database.users)
    owners = sorted(mine[0])
    elements = sum(len(have) for one in mine for have in one.values())
    shown = spillway("migrate", URI, "plan.json", "--json").splitlines()
    assert json.loads(shown[0])["elements"] == elements, shown
    stop, result = multiprocessing.Event(), multiprocessing.Queue()
    writers = [multiprocessing.Process(target=write,
                                       args=(writer, owners, mine[writer], stop, result))
               for writer in range(WRITERS)]
    began = time.time()
    for writer in writers:
        writer.start()
    try:
        migrate_killed(len(owners))
        killed = time.time()
        repeat_until_caught_up("migrate", URI, "plan.json", "--execute")
        repeat_until_caught_up("sweep", URI, "events")
    finally:
        stop.set()
    results = [result.get(timeout=300) for _ in writers]
    for writer in writers:
        writer.join()
    stopped = time.time()
    spillway("migrate", URI, "plan.json", "--execute", "--finish", "--yes", "--quiet")
    finished = time.time()
    total = check(results, owners)
    assert findings(URI, "events") == 0
    check_documents(database.users)
    counts = {what: sum(counts[what] for _, _, counts in results) for what in results[0][2]}
    print(f"{SET}, layout {LAYOUT}: {len(owners)} owners, {elements} elements, then {total}; "
          f"{counts}; {killed - began:.0f} s with {KILLS} kills, {stopped - killed:.0f} s to the "
          f"end, {finished - stopped:.0f} s to finish")


main()
