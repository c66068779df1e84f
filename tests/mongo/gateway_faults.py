"""A proxy that breaks connections at chosen moments, and clients that log a history.

The proxy knows messages. For a write command it rolls one of the FATES; everything else passes. The
history has the form of history.h, so that linearizable/ can check it.
"""

import collections
import random
import socket
import struct
import threading
import time

import pymongo

from gateway_lib import MSG, body_of, receive

WRITES = ("update", "findAndModify", "insert", "delete")
FATES = ("before", "after", "early", "delay")


class Cut(Exception):
    """The connection ends here."""


class Proxy:
    """A port in front of `target`. `rates`: out of 100 write commands, how many meet each fate.

    before: cut before the server gets the command
    after:  cut when the reply is there; the client does not get it
    early:  cut as soon as the server has the command
    delay:  30 ms before the server gets the command
    """

    def __init__(self, target, seed, **rates):
        self.target = target
        self.rates = rates
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.met = collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            end, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(end,), daemon=True).start()

    def fate(self, data):
        if struct.unpack("<i", data[12:16])[0] != MSG or next(iter(body_of(data))) not in WRITES:
            return None
        with self.lock:
            roll = self.random.randrange(100)
            for fate in FATES:
                roll -= self.rates.get(fate, 0)
                if roll < 0:
                    self.met[fate] += 1
                    return fate
        return None

    def pass_one(self, client, server):
        data = receive(client)
        fate = self.fate(data)
        if fate == "before":
            raise Cut
        if fate == "delay":
            time.sleep(0.03)
        server.sendall(data)
        if fate == "early":
            raise Cut
        reply = receive(server)
        if fate == "after":
            raise Cut
        client.sendall(reply)

    def serve(self, client):
        try:
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while True:
                    self.pass_one(client, server)
        except (Cut, EOFError, OSError):
            pass


class Worker:
    """A client that logs what it calls and what it gets."""

    def __init__(self, folder, number):
        self.number = number
        self.operation = 0
        self.acknowledged = {}  # by owner: labels
        self.attempted = {}
        self.file = open(f"{folder}/worker-{number}.log", "w", encoding="ascii")

    def log(self, words):
        self.file.write(f"{time.monotonic_ns()} {self.number} {self.operation} {words}\n")

    def push(self, collection, owner):
        self.operation += 1
        label = self.number * 1_000_000_000 + self.operation * 10
        self.attempted.setdefault(owner, []).append(label)
        self.log(f"append c/{owner} 1 0")
        try:
            done = collection.update_one({"_id": owner}, {"$push": {"f": label}})
        except pymongo.errors.PyMongoError:
            self.log("unknown")
            return
        assert done.matched_count == 1, done.raw_result
        self.acknowledged.setdefault(owner, []).append(label)
        self.log("appended -1")

    def read(self, collection, owner):
        self.operation += 1
        self.log(f"read c/{owner} oldest -1 1000000")
        try:
            labels = collection.find_one({"_id": owner})["f"]
        except pymongo.errors.PyMongoError:
            self.log("unknown")
            return
        self.log("got 0 0 " + " ".join(map(str, labels)))


def check(workers, documents):
    """Each acknowledged element exists once, and no element twice. Returns the doubled ones."""
    doubled = []
    for owner, stored in documents.items():
        count = collections.Counter(stored)
        doubled += [label for label, times in count.items() if times > 1]
        for worker in workers:
            for label in worker.acknowledged.get(owner, []):
                assert count[label] >= 1, f"{label} of {owner} was acknowledged and is lost"
        known = {label for worker in workers for label in worker.attempted.get(owner, [])}
        assert set(stored) <= known, f"{owner} has elements that nobody pushed"
    return doubled
