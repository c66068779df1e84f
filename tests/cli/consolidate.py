"""Fill the collections of test_consolidate_server.sh, write to them meanwhile, and compare them.

    fill URI ROOMS            collections messages_<room>, with indexes
    real URI FOLDER DOCUMENTS ROOMS
                              the same with about DOCUMENTS real chat messages (0: all), ROOMS rooms
                              and all empty rooms; also writes plan.json
    write URI FILE SECONDS    insert, update and delete in them like eight applications; write the
                              acknowledged changes to FILE
    update URI FILE STOP PLAN update documents in them until the file STOP exists. After a cut-over
                              renames a writer's collection, the writer continues in the joint
                              collection, as soon as its slice is open. Write the acknowledged
                              changes to FILE
    check URI PLAN [FILE]     compare the joint collection with the old ones, or with the
                              acknowledged changes in FILE
"""

import gzip
import json
import os
import random
import sys
import threading
import time

import pymongo
from bson import json_util

WRITERS = 8


def fill(database, rooms):
    generator = random.Random(7)
    for room in range(rooms):
        collection = database[f"messages_room{room:03}"]
        collection.create_index([("at", -1)])
        collection.create_index("number", unique=True, sparse=True)
        count = 600 if room == 0 else generator.randrange(1, 12)
        collection.insert_many([{"_id": i, "number": i, "at": generator.randrange(1000),
                                 "text": "x" * generator.randrange(60)} for i in range(count)])
    # Drivers may refuse this document, but servers accept it: use a command.
    odd = {"_id": "odd", "": 1, "a.b": {"": [None, {"": 2}]}, "c": {"$d": 3}}
    database.command("insert", "messages_room001", documents=[odd])
    database.command("create", "unrelated")


def real(database, folder, most, only):
    rooms = {}
    with open(f"{folder}/rooms.ndjson", encoding="utf-8") as lines:
        for line in lines:
            room = json.loads(line)
            if len(rooms) < only or room["messages"] == 0:
                rooms[room["_id"]] = []
    with gzip.open(f"{folder}/events.ndjson.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            message = json_util.loads(line)
            room = rooms.get(message.pop("room"))
            if room is not None and (not most or len(room) < max(1, most // len(rooms))):
                room.append(message)
    members = []
    for room, kept in rooms.items():
        for number, message in enumerate(kept): # with the numbers of the room's own collection
            message["_id"] = number
        name = "messages_" + room
        if kept:
            database.command("insert", name, documents=kept[:5000], ordered=False)
        else:
            database.command("create", name)
        for at in range(5000, len(kept), 5000):
            database.command("insert", name, documents=kept[at:at + 5000], ordered=False)
        members.append({"collection": name, "value": room})
    group = {"into": "messages", "field": "room", "collections": members}
    with open("plan.json", "w", encoding="utf-8") as out:
        json.dump({"spillwayPlan": 1, "sprawl": [group]}, out)
    print(len(rooms), "rooms")


def change(collection, documents, generator, number):
    """Insert, update or delete one document, in the collection and in `documents`."""
    kind = generator.random()
    if kind < 0.5 or not documents:
        key = f"new{number}"
        documents[key] = {"_id": key, "text": "t" * generator.randrange(30), "at": number}
        collection.insert_one(documents[key])
    elif kind < 0.8:
        key = generator.choice(list(documents))
        documents[key]["text"] = f"edited {number}"
        collection.update_one({"_id": key}, {"$set": {"text": documents[key]["text"]}})
    else:
        key = generator.choice(list(documents))
        del documents[key]
        collection.delete_one({"_id": key})


def write(database, path, seconds):
    names = sorted(name for name in database.list_collection_names() if name.startswith("messages_"))
    state = {name: {document["_id"]: document for document in database[name].find()}
             for name in names}
    end = time.time() + seconds
    changes = []

    def work(own): # each writer has its own collections, so that it knows their contents
        generator = random.Random()
        count = 0
        while time.time() < end:
            name = generator.choice(own)
            change(database[name], state[name], generator, count)
            count += 1
        changes.append(count)

    writers = [threading.Thread(target=work, args=(names[at::WRITERS],)) for at in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(changes) == WRITERS, "a writer has failed"
    with open(path, "w", encoding="utf-8") as out:
        out.write(json_util.dumps({name: list(documents.values())
                                   for name, documents in state.items()}))
    print(sum(changes), "changes by", WRITERS, "writers")


def is_open(database, group, at):
    """Whether member `at` may be written to in the joint collection, and whether others still wait."""
    entries = database["spillway.imports"]
    place = entries.find_one({"_id": group["into"] + ":consolidate.at"})["entry"]
    phase = entries.find_one({"_id": group["into"] + ":consolidate"})["entry"]["phase"]
    cutting = phase == "cutting over"
    return phase == "cut over" or (cutting and place["phase"] == phase and place["member"] > at), cutting


def update(database, path, stop, plan):
    """Update like an application that inserts nothing: updating a missing document has no effect.
    If a writer's collection was renamed, wait until the joint one is open and continue there."""
    with open(plan, encoding="utf-8") as lines:
        group = json.load(lines)["sprawl"][0]
    state, values, places, joint = {}, {}, {}, set()
    for at, member in enumerate(group["collections"]):
        name = member["collection"]
        state[name] = {document["_id"]: document for document in database[name].find()}
        values[name], places[name] = member["value"], at
    names = sorted(state)
    counts, between, waits = [], [], []

    def move(name):
        began = time.time()
        while not os.path.exists(stop):
            opened, cutting = is_open(database, group, places[name])
            if opened:
                joint.add(name)
                between.append(cutting)
                waits.append(time.time() - began)
                return
            if name in database.list_collection_names(): # it was renamed back
                return
            time.sleep(0.01)

    def work(own):
        generator = random.Random()
        count = 0
        while not os.path.exists(stop):
            name = generator.choice(own)
            key = generator.choice(list(state[name]))
            text = f"updated {count}"
            collection, wanted = database[name], key
            if name in joint:
                collection = database[group["into"]]
                wanted = {group["field"]: values[name], "id": key}
            if collection.update_one({"_id": wanted}, {"$set": {"text": text}}).matched_count:
                state[name][key]["text"] = text
                count += 1
            else:
                assert name not in joint, (name, key)
                move(name)
        counts.append(count)

    writers = [threading.Thread(target=work, args=(names[at::WRITERS],)) for at in range(WRITERS)]
    for writer in writers:
        writer.start()
    with open(path + ".begun", "w", encoding="utf-8"):
        pass
    for writer in writers:
        writer.join()
    assert len(counts) == WRITERS, "a writer has failed"
    assert any(between), "no collection was open before the cut-over ended"
    with open(path, "w", encoding="utf-8") as out:
        out.write(json_util.dumps({name: list(documents.values())
                                   for name, documents in state.items()}))
    print(sum(counts), "updates by", WRITERS, "writers,", len(joint), "collections moved,",
          sum(between), "of them during other cut-overs; the longest waited",
          f"{max(waits):.2f} s")


def transformed(document, field, value):
    rest = {name: at for name, at in document.items() if name != "_id"}
    return {"_id": {field: value, "id": document["_id"]}, field: value, **rest}


def by_id(documents):
    return {json_util.dumps(document["_id"]): document for document in documents}


def check(database, plan, path=None):
    with open(plan, encoding="utf-8") as lines:
        group = json.load(lines)["sprawl"][0]
    acknowledged = None
    if path:
        with open(path, encoding="utf-8") as lines:
            acknowledged = json_util.loads(lines.read())
    names = database.list_collection_names()
    joint, expected = {}, {}
    for document in database[group["into"]].find():
        joint[json_util.dumps(document["_id"])] = json_util.dumps(document)
    for member in group["collections"]:
        name = member["collection"]
        documents = acknowledged[name] if acknowledged else list(database[name].find())
        if acknowledged and name in names: # its collection still exists
            assert by_id(documents) == by_id(database[name].find()), name
        for document in documents:
            made = transformed(document, group["field"], member["value"])
            expected[json_util.dumps(made["_id"])] = json_util.dumps(made)
    assert joint == expected, (len(joint), len(expected),
                               list(set(joint.items()) ^ set(expected.items()))[:4])
    by_room = {one["_id"]: one["count"] for one in database[group["into"]].aggregate(
        [{"$group": {"_id": "$" + group["field"], "count": {"$sum": 1}}}])}
    assert sum(by_room.values()) == len(expected)
    print(len(expected), "documents in", len(by_room), "collections are equal")


def main():
    command, uri, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    with pymongo.MongoClient(uri) as client:
        database = client.get_default_database()
        if command == "fill":
            fill(database, int(arguments[0]))
        elif command == "real":
            real(database, arguments[0], int(arguments[1]), int(arguments[2]))
        elif command == "write":
            write(database, arguments[0], float(arguments[1]))
        elif command == "update":
            update(database, *arguments)
        else:
            check(database, *arguments)


main()
