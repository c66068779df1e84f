"""Two gateways: one deletes owners, while the other pushes to them and spills. Nothing may be left that a
later push, or a person, has to care about."""

import os
import random
import subprocess
import threading

import pymongo

from gateway_lib import Gateway, run

STORE = os.environ["STORE"]
SPILLWAY = os.environ["SPILLWAY"]
DATABASE = pymongo.uri_parser.parse_uri(STORE)["database"]
ROUNDS, OWNERS, PUSHES = 10, 2, 9


def posts_of(gateway):
    return pymongo.MongoClient("127.0.0.1", gateway.port)[DATABASE].posts


def push(posts, owner, count):
    for number in range(count):
        posts.update_one({"_id": owner}, {"$push": {"f": number}}, upsert=True)


def delete_sometimes(posts, owner, dice, ended):
    while not ended.wait(dice.random() / 50):
        posts.delete_one({"_id": owner})


def race(pushing, deleting, owner, dice):
    """Push through one gateway, and delete through the other."""
    ended = threading.Event()
    other = threading.Thread(target=delete_sometimes, args=(deleting, owner, dice, ended), daemon=True)
    other.start()
    push(pushing, owner, 3 * PUSHES)
    ended.set()
    other.join()


def check_afterwards(pushing, deleting, owner):
    """The owner begins again: each of its pushes is made, and nothing else is there."""
    deleting.delete_one({"_id": owner})
    push(pushing, owner, PUSHES)
    assert pushing.find_one({"_id": owner})["f"] == list(range(PUSHES)), owner
    deleting.delete_one({"_id": owner})


def owners_begin_again_after_a_race():
    first, second = Gateway(STORE), Gateway(STORE)
    dice = random.Random(os.environ.get("SPILLWAY_SEED", "1"))
    pushing, deleting = posts_of(first), posts_of(second)
    for number in range(ROUNDS * OWNERS):
        race(pushing, deleting, number % OWNERS, dice)
        check_afterwards(pushing, deleting, number % OWNERS)
    first.stop()
    second.stop()


def repair_deletes_what_is_left():
    """... though no head of the owner says anything any more."""
    repaired = subprocess.run([SPILLWAY, "repair", STORE, "posts.f"], capture_output=True, text=True, check=False)
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    with pymongo.MongoClient(STORE) as client:
        assert client[DATABASE]["posts.f.pages"].count_documents({}) == 0


run([owners_begin_again_after_a_race, repair_deletes_what_is_left])
