"""Helpers of the gateway's tests: a scripted server, a raw client, and a gateway that is started.

The scripted server answers a driver's handshake, lists its `definitions` and `views`, and records every
other command on the databases `recorded`. What it answers to those depends on the command's name, and on
the test's script.
"""

import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import bson

MSG, QUERY, REPLY, COMPRESSED = 2013, 2004, 1, 2012
MORE_TO_COME = 2
# A definition of preset `gateway` for the array `f` of the collection `posts`, as it is stored.
DEFINITION = {"_id": "posts.f", "imports": [], "entry": {
    "name": "posts.f", "layout": "outlier", "keep": "newest", "collection": "posts", "array": "f",
    "pageCollection": "posts.f.pages", "pageArray": "f", "pageOwner": "owner", "pageNumber": "page",
    "bounds": {"threshold": 3, "pageCapacity": 2, "headBytesMax": 1048576, "pageBytesMax": 1048576},
    "largest": {"threshold": 3, "pageCapacity": 2, "headBytesMax": 1048576, "pageBytesMax": 1048576},
    "opWindow": 64, "countField": "", "overflowField": "", "pagesField": "", "pageCount": ""}}
WAIT_SECONDS = int(os.environ.get("SPILLWAY_WAIT_SECONDS", "60"))


def frame(payload, opcode=MSG, request=1, response=0):
    return struct.pack("<iiii", 16 + len(payload), request, response, opcode) + payload


def message(body, sequences=(), flags=0, request=1, response=0):
    """An OP_MSG; a sequence is (name, [document])."""
    payload = struct.pack("<I", flags) + b"\0" + bson.encode(body)
    for name, documents in sequences:
        section = name.encode() + b"\0" + b"".join(bson.encode(one) for one in documents)
        payload += b"\1" + struct.pack("<i", len(section) + 4) + section
    return frame(payload, MSG, request, response)


def query(body, namespace="admin.$cmd", request=1):
    payload = struct.pack("<i", 0) + namespace.encode() + b"\0" + struct.pack("<ii", 0, -1)
    return frame(payload + bson.encode(body), QUERY, request)


def receive_exactly(end, count):
    parts = []
    while count > 0:
        part = end.recv(min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive(end):
    """One message as bytes; EOFError or OSError if the connection ends."""
    header = receive_exactly(end, 16)
    return header + receive_exactly(end, struct.unpack("<i", header[:4])[0] - 16)


def body_of(data):
    """The body of an OP_MSG whose body comes first, or the document of an OP_REPLY or OP_QUERY."""
    opcode = struct.unpack("<i", data[12:16])[0]
    at = {MSG: 21, REPLY: 36}.get(opcode) or data.index(b"\0", 20) + 9
    size = struct.unpack("<i", data[at:at + 4])[0]
    return bson.decode(data[at:at + size])


def wait_until(what, condition):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited too long until {what}"
        time.sleep(0.02)


class Server:
    """A scripted server on a port of the loopback address."""

    def __init__(self, set_name=None, definitions=(), recorded=("app",), script=None,
                 views=()):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.set_name = set_name
        self.members = [self]  # of the set
        self.is_primary = True
        self.definitions = definitions  # of the database `d`
        self.views = views  # of every database: descriptions as listCollections returns them
        self.recorded = recorded
        self.script = script or {}  # name: a function of the body that returns the answer, or None
        self.received = []  # messages on the recorded databases
        self.by = []  # ... and the number of the connection of each
        self.sent = []  # ... and the bytes of their replies
        self.may_answer = threading.Event()  # for the command `wait`
        self.connections = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                end, _ = self.listener.accept()
            except OSError:
                return
            self.connections.add(end)
            threading.Thread(target=self.serve, args=(end,), daemon=True).start()

    def close_all(self):
        for end in list(self.connections):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve(self, end):
        try:
            while True:
                data = receive(end)
                for part in self.answer(data, end.fileno()):
                    end.sendall(part)
        except (EOFError, OSError):
            end.close()
            self.connections.discard(end)

    def hello(self):
        answer = {"isWritablePrimary": self.is_primary, "ismaster": self.is_primary,
                  "helloOk": True, "maxBsonObjectSize": 16777216, "maxMessageSizeBytes": 48000000,
                  "maxWriteBatchSize": 100000, "logicalSessionTimeoutMinutes": 30,
                  "minWireVersion": 0, "maxWireVersion": 99, "readOnly": False, "ok": 1.0}
        if self.set_name:
            names = [f"127.0.0.1:{member.port}" for member in self.members]
            answer |= {"setName": self.set_name, "hosts": names, "setVersion": 1,
                       "me": f"127.0.0.1:{self.port}", "secondary": not self.is_primary,
                       "electionId": bson.ObjectId(b"\1" * 12)}
            answer["primary"] = next(name for name, member in zip(names, self.members)
                                     if member.is_primary)
        return answer

    def answer(self, data, by):
        """The parts of the answer. A part may wait, or end the connection."""
        request, opcode = struct.unpack("<i", data[4:8])[0], struct.unpack("<i", data[12:16])[0]
        body = body_of(data)
        name = next(iter(body))
        if opcode == QUERY:
            payload = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(self.hello())
            return [frame(payload, REPLY, 1, request)]
        bookkeeping = str(body[name]).startswith("spillway.") or name == "listCollections"
        if (body.get("$db") in self.recorded and not bookkeeping and
                name not in ("hello", "isMaster", "ismaster")):
            self.received.append(data)
            self.by.append(by)
            return self.answer_app(name, data, request)
        if name in ("hello", "isMaster", "ismaster"):
            return [message(self.hello() | self.authentication(body), response=request)]
        if name in ("saslStart", "saslContinue"):
            return [message({"conversationId": 1, "done": True, "payload": b"", "ok": 1.0},
                            response=request)]
        namespace = f"{body['$db']}.{body[name]}"
        found = self.definitions if body[name] == "spillway.definitions" else []
        if name == "listCollections":
            found = self.views
        cursor = {"id": bson.Int64(0), "ns": namespace, "firstBatch": list(found)}
        return [message({"cursor": cursor, "ok": 1.0}, response=request)]

    @staticmethod
    def authentication(body):
        found = {}
        if "saslSupportedMechs" in body:
            found["saslSupportedMechs"] = ["SCRAM-SHA-256"]
        if "speculativeAuthenticate" in body:
            found["speculativeAuthenticate"] = {"conversationId": 1, "done": False, "payload": b"x"}
        return found

    def scripted(self, name, data):
        answer = self.script[name](body_of(data))
        if answer is None:
            raise EOFError
        return answer

    def remember(self, parts):
        for part in parts:
            self.sent.append(part)
            yield part

    def answer_app(self, name, data, request):
        if struct.unpack("<I", data[16:20])[0] & MORE_TO_COME and name != "talkative":
            return []
        if name == "cut":
            raise EOFError
        if name in self.script:
            return self.remember([message(self.scripted(name, data), response=request)])
        if name == "wait":
            self.may_answer.wait()
        if name == "exhaust":
            flags = [MORE_TO_COME, MORE_TO_COME, 0]
            return self.remember([message({"n": i, "ok": 1.0}, flags=flag, response=request + i)
                                  for i, flag in enumerate(flags)])
        if name == "big":
            return self.remember([message({"data": b"z" * (44 << 20), "ok": 1.0}, response=request)])
        if name == "slowly":
            whole = message({"text": "x" * 1000, "ok": 1.0}, response=request)
            return self.remember([whole[i:i + 7] for i in range(0, len(whole), 7)])
        return self.remember([message({"n": random.randrange(1 << 30), "ok": 1.0},
                                      response=request)])


class Gateway:
    """A `spillway serve` process; `files`: its limit of open files."""

    def __init__(self, uri, *options, listen="127.0.0.1:0", files=None):
        self.log = open(f"gateway-{random.randrange(1 << 30)}.log", "w+b")
        self.process = subprocess.Popen(
            [os.environ["SPILLWAY"], "serve", uri, "--listen", listen, *options],
            stdout=subprocess.PIPE, stderr=self.log,
            preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))
        self.line = self.process.stdout.readline().decode()
        found = re.search(r"mongodb://127\.0\.0\.1:(\d+)/", self.line)
        assert found, f"the gateway does not start: {self.line} {self.log_text()}"
        self.port = int(found.group(1))

    def metrics_port(self):
        """Only with --metrics."""
        return int(re.search(r"metrics on http://127\.0\.0\.1:(\d+)/metrics$", self.line)[1])

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode()

    def connect(self):
        end = socket.create_connection(("127.0.0.1", self.port))
        end.settimeout(WAIT_SECONDS)
        return end

    def ask(self, *args, **options):
        """The body of the reply to a message on a new connection."""
        with self.connect() as end:
            end.sendall(message(*args, **options))
            return body_of(receive(end))

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """End it by SIGTERM; it must end well, without a finding of a sanitizer."""
        self.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT_SECONDS)
        text = self.log_text()
        assert code == 0, f"exit code {code}: {text}"
        assert "Sanitizer" not in text and "runtime error" not in text, text


def is_closed(end):
    """Does the other side close the connection, without an answer?"""
    try:
        return end.recv(1) == b""
    except ConnectionError:
        return True


def run(tests):
    """Run the functions; a failed assertion ends the program."""
    for test in tests:
        test()
        print("passed:", test.__name__, flush=True)
