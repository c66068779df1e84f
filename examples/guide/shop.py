#!/usr/bin/env python3
"""shop.py: an application with an array that grows, for docs/tutorial/guide.md.

    shop.py fill             makes the collection `customers`
    shop.py run STOP TOLD    records events, with `$push`, until there is a file STOP; what the server
                             has acknowledged goes to the file TOLD, which has to stay
    shop.py busy NAME COUNT TOLD  records so many events of one customer, fifty at a time
    shop.py check TOLD...    reads what `spillway export` prints: is every event there, once, in order?

The database is that of SPILLWAY_URI. It needs pymongo, and nothing of Spillway.
"""

import datetime
import json
import os
import sys
import time

CUSTOMERS = 400
RESELLERS = {7: 9000, 101: 6000, 250: 4000}  # three of them order for others, every day
FIRST = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
DAYS = 500
KINDS = ("viewed", "ordered", "paid", "returned")


def customers():
    """The collection. (Imported here: to check, no driver is needed.)"""
    import pymongo
    return pymongo.MongoClient(os.environ["SPILLWAY_URI"]).get_default_database().customers


def event(number, at):
    """One event: what happened, when, and with which product."""
    return {"n": number, "at": at, "kind": KINDS[number % len(KINDS)],
            "product": f"product-{number * 7919 % 5000}", "note": "x" * (20 + number % 41)}


def customer(number):
    """A customer, and all events since the first day, spread over the days unevenly but alike."""
    count = RESELLERS.get(number, 4 + number * 31 % 60)
    seconds = [DAYS * 86400 * (i + (i * 37 + number) % 10 / 10) / count for i in range(count)]
    return {"_id": f"customer-{number}", "name": f"Customer {number}",
            "address": {"street": "Long Street 1", "city": "Aarhus"},
            "interests": ["books", "music", "games"][:1 + number % 3],
            "events": [event(i, FIRST + datetime.timedelta(seconds=s))
                       for i, s in enumerate(seconds)]}


def fill():
    """Make the collection anew."""
    collection = customers()
    collection.drop()
    collection.insert_many(customer(number) for number in range(CUSTOMERS))
    print(f"{CUSTOMERS} customers, {collection.estimated_document_count()} documents")


def push(collection, name, numbers, log):
    """Record events of a customer; log them once they are acknowledged."""
    now = FIRST + datetime.timedelta(days=DAYS)
    collection.update_one({"_id": name},
                          {"$push": {"events": {"$each": [event(n, now) for n in numbers]}}})
    for number in numbers:
        print(name, number, file=log, flush=True)


def run(stop, told):
    """What the application does all day. It knows nothing of pages."""
    collection = customers()
    names = [f"customer-{number}" for number in (*RESELLERS, 1, 2, 3)]
    with open(told, "w", encoding="utf-8") as log:
        number = 1_000_000
        while os.path.exists(told) and not os.path.exists(stop):
            push(collection, names[number % len(names)], [number], log)
            number += 1
            time.sleep(0.01)


def busy(name, count, told):
    """A day on which one customer does a lot."""
    with open(told, "w", encoding="utf-8") as log:
        for first in range(2_000_000, 2_000_000 + int(count), 50):
            push(customers(), name, range(first, first + 50), log)
    print(f"{count} events of {name}")


def check(*told):
    """
    Compare `spillway export`, on stdin, with what was there before and what was acknowledged. Each
    program's events have to be in its order; those of two that ran at once may be mixed.
    """
    expected = {f"customer-{number}": [e["n"] for e in customer(number)["events"]]
                for number in range(CUSTOMERS)}
    for file in told:
        with open(file, encoding="utf-8") as log:
            for line in log:
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
            sys.exit(f"{name} is not as it should be")
    print("every event is there once, in order")


if __name__ == "__main__":
    command = {"fill": fill, "run": run, "busy": busy, "check": check}.get(sys.argv[1] if sys.argv[1:] else "")
    if not command:
        sys.exit(__doc__)
    command(*sys.argv[2:])
