#!/usr/bin/env python3
"""shop.py: an application with an array that grows, for docs/tutorial/guide.md.

    shop.py fill             create the collection `customers`
    shop.py run STOP LOG     record events with `$push` until a file STOP exists or LOG is removed;
                             write the acknowledged events to the file LOG
    shop.py busy NAME COUNT LOG  record COUNT events of one customer, fifty at a time
    shop.py check LOG...     read the output of `spillway export`, and check that every event is in it
                             once, in order

SPILLWAY_URI names the database. The program needs pymongo, and nothing of Spillway.
"""

import datetime
import json
import os
import sys
import time

CUSTOMERS = 400
RESELLERS = {7: 9000, 101: 6000, 250: 4000}  # three customers with many orders every day
FIRST = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
DAYS = 500
KINDS = ("viewed", "ordered", "paid", "returned")


def customers():
    """The collection. The driver is imported here, because `check` does not need it."""
    import pymongo
    return pymongo.MongoClient(os.environ["SPILLWAY_URI"]).get_default_database().customers


def event(number, at):
    """One event: its kind, its time and its product."""
    return {"n": number, "at": at, "kind": KINDS[number % len(KINDS)],
            "product": f"product-{number * 7919 % 5000}", "note": "x" * (20 + number % 41)}


def customer(number):
    """A customer with all events since the first day, at irregular times."""
    count = RESELLERS.get(number, 4 + number * 31 % 60)
    seconds = [DAYS * 86400 * (i + (i * 37 + number) % 10 / 10) / count for i in range(count)]
    return {"_id": f"customer-{number}", "name": f"Customer {number}",
            "address": {"street": "Long Street 1", "city": "Aarhus"},
            "interests": ["books", "music", "games"][:1 + number % 3],
            "events": [event(i, FIRST + datetime.timedelta(seconds=s))
                       for i, s in enumerate(seconds)]}


def fill():
    """Drop the collection and create it again."""
    collection = customers()
    collection.drop()
    collection.insert_many(customer(number) for number in range(CUSTOMERS))
    print(f"{CUSTOMERS} customers, {collection.estimated_document_count()} documents")


def push(collection, name, numbers, acknowledged):
    """Record events of a customer, and log them after they are acknowledged."""
    now = FIRST + datetime.timedelta(days=DAYS)
    collection.update_one({"_id": name},
                          {"$push": {"events": {"$each": [event(n, now) for n in numbers]}}})
    for number in numbers:
        print(name, number, file=acknowledged, flush=True)


def run(stop, log):
    """Do what the application does all day. It does not know about pages."""
    collection = customers()
    names = [f"customer-{number}" for number in (*RESELLERS, 1, 2, 3)]
    with open(log, "w", encoding="utf-8") as acknowledged:
        number = 1_000_000
        while os.path.exists(log) and not os.path.exists(stop):
            push(collection, names[number % len(names)], [number], acknowledged)
            number += 1
            time.sleep(0.01)


def busy(name, count, log):
    """Record many events of one customer."""
    with open(log, "w", encoding="utf-8") as acknowledged:
        for first in range(2_000_000, 2_000_000 + int(count), 50):
            push(customers(), name, range(first, first + 50), acknowledged)
    print(f"{count} events of {name}")


def check(*logs):
    """
    Compare `spillway export`, on stdin, with the first events and the acknowledged ones. The events
    of each program must be in order; events of programs that ran at the same time may be mixed.
    """
    expected = {f"customer-{number}": [e["n"] for e in customer(number)["events"]]
                for number in range(CUSTOMERS)}
    for log in logs:
        with open(log, encoding="utf-8") as acknowledged:
            for line in acknowledged:
                name, number = line.split()
                expected[name].append(int(number))
    found = {name: [] for name in expected}
    for line in sys.stdin:
        element = json.loads(line)
        found[element["owner"]].append(int(element["element"]["n"]["$numberInt"]))
    for name, numbers in found.items():
        old = [number for number in numbers if number < 1_000_000]
        parts = [[n for n in numbers if n // 1_000_000 == part] for part in (1, 2)]
        if old + parts[0] + parts[1] != expected[name] or numbers[:len(old)] != old:
            sys.exit(f"the events of {name} are wrong")
    print("every event is there once, in order")


if __name__ == "__main__":
    command = {"fill": fill, "run": run, "busy": busy, "check": check}.get(sys.argv[1] if sys.argv[1:] else "")
    if not command:
        sys.exit(__doc__)
    command(*sys.argv[2:])
