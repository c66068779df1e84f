"""How many connections a gateway keeps, and the resident memory of each.

10 000 connections that sent only hello have to fit in 400 MB. If the hard limit of open files permits fewer, the test
opens as many as it permits, and bounds the bytes of each. 1000 connections that have logged in have to fit in 100 MB.
"""

import base64
import hashlib
import hmac
import json
import os
import resource
import socket
import subprocess
import time
import urllib.parse

from gateway_lib import Gateway, Server, body_of, message, receive, run

CONNECTIONS, RESIDENT_BYTES = 10000, 400 << 20
USERS, USERS_RESIDENT_BYTES = 1000, 100 << 20
BYTES_EACH = 8192  # half of a read buffer: an idle connection keeps none
PER_ADDRESS = 1000
OTHER_FILES = 200  # of this process and of the gateway


def resident_bytes(gateway):
    with open(f"/proc/{gateway.process.pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def raise_limit():
    """Raise this process's soft limit of open files to the hard one, as the gateway does; return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 30


def connections_that_sent_hello_are_small():
    files = raise_limit()
    count = min(CONNECTIONS, (files - OTHER_FILES) // 2)
    assert count >= 100, f"the hard limit of open files is {files}: too few for this test"
    server = Server()
    gateway = Gateway(f"mongodb://127.0.0.1:{server.port}/d", "--max-connections", str(count))
    before, held = resident_bytes(gateway), []
    for i in range(count):
        # An address may have 1000 connections.
        end = socket.create_connection(("127.0.0.1", gateway.port),
                                       source_address=(f"127.0.0.{2 + i // PER_ADDRESS}", 0))
        end.settimeout(60)
        end.sendall(message({"hello": 1, "$db": "admin"}))
        assert body_of(receive(end))["ok"] == 1
        held.append(end)
    after = resident_bytes(gateway)
    for end in held[:: max(1, count // 50)]:  # each lives
        end.sendall(message({"hello": 1, "$db": "admin"}))
        assert body_of(receive(end))["ok"] == 1
    print(f"{count} connections: {after >> 20} MiB resident, before {before >> 20} MiB, "
          f"{(after - before) // count} bytes each", flush=True)
    assert after <= RESIDENT_BYTES, after
    assert (after - before) / count <= BYTES_EACH, (before, after, count)
    assert server.received == []
    for end in held:
        end.close()
    gateway.stop()


class Scram:
    """Logs in with SCRAM-SHA-256 (RFC 7677). The costly hash of the password is made once."""

    def __init__(self, user, password):
        self.user, self.password, self.salted = user, password, {}

    def say(self, end, body, payload):
        end.sendall(message(body | {"payload": payload.encode(), "$db": "admin"}))
        answer = body_of(receive(end))
        assert answer["ok"] == 1, answer
        return answer

    def salt(self, salt, count):
        if (salt, count) not in self.salted:
            self.salted[salt, count] = hashlib.pbkdf2_hmac("sha256", self.password.encode(), base64.b64decode(salt),
                                                           int(count))
        return self.salted[salt, count]

    def log_in(self, end, nonce):
        first = f"n={self.user},r={nonce}"
        answer = self.say(end, {"saslStart": 1, "mechanism": "SCRAM-SHA-256",
                                "options": {"skipEmptyExchange": True}}, "n,," + first)
        server_first = answer["payload"].decode()
        given = dict(part.split("=", 1) for part in server_first.split(","))
        assert given["r"].startswith(nonce)
        salted = self.salt(given["s"], given["i"])
        last = "c=biws,r=" + given["r"]
        signed = f"{first},{server_first},{last}".encode()
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
        step = {"saslContinue": 1, "conversationId": answer["conversationId"]}
        answer = self.say(end, step, f"{last},p={proof}")
        verifier = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        assert answer["payload"].decode() == "v=" + base64.b64encode(verifier).decode()
        if not answer["done"]:
            answer = self.say(end, step, "")
        assert answer["done"]


def connections_that_logged_in_are_small():
    """Each has its own connection to the server, and sends a command."""
    raise_limit()
    uri = urllib.parse.urlsplit(os.environ["SPILLWAY_TEST_AUTH_URI"])
    user = Scram(uri.username, uri.password)
    gateway = Gateway(f"mongodb://{uri.username}:{uri.password}@{uri.hostname}:{uri.port}/d?authSource=admin")
    before, held = resident_bytes(gateway), []
    for i in range(USERS):
        end = socket.create_connection(("127.0.0.1", gateway.port), source_address=("127.0.0.2", 0))
        end.settimeout(60)
        end.sendall(message({"hello": 1, "$db": "admin"}))
        assert body_of(receive(end))["ok"] == 1
        user.log_in(end, base64.b64encode(os.urandom(24)).decode())
        held.append(end)
    for end in held:  # all live, and may read
        end.sendall(message({"find": "things", "limit": 1, "singleBatch": True, "$db": "d"}))
        assert body_of(receive(end))["ok"] == 1
    after = resident_bytes(gateway)
    print(f"{USERS} connections that logged in: {after >> 20} MiB resident, before {before >> 20} MiB, "
          f"{(after - before) // USERS} bytes each", flush=True)
    assert after <= USERS_RESIDENT_BYTES, after
    for end in held:
        end.close()
    gateway.stop()


def few_open_files_lower_the_connections():
    """Without --max-connections; the log says so."""
    server = Server()
    uri = f"mongodb://127.0.0.1:{server.port}/d"
    gateway = Gateway(uri, files=260)
    said, lines, tries = [], [], 0
    while not said and tries < 100:  # it follows the line of the start
        lines = [json.loads(line) for line in gateway.log_text().splitlines()]
        said = [line for line in lines if line["event"] == "fewer connections"]
        tries += 1
        time.sleep(0.1)
    assert len(said) == 1, lines
    assert (said[0]["maxConnections"], said[0]["openFiles"]) == (30, 260), said
    held = [gateway.connect() for _ in range(30)]
    for end in held:
        end.sendall(message({"hello": 1, "$db": "admin"}))
        assert body_of(receive(end))["ok"] == 1
    with gateway.connect() as one_more:
        try:
            assert one_more.recv(1) == b""
        except ConnectionError:
            pass
    for end in held:
        end.close()
    gateway.stop()

    gateway = Gateway(uri, "--max-connections", "20", files=260)  # that many were asked for
    assert "fewer connections" not in gateway.log_text()
    gateway.stop()
    made = subprocess.run(["sh", "-c", 'ulimit -n 210; exec "$SPILLWAY" serve "$0" --listen 127.0.0.1:0 '
                           "--max-connections 20", uri], capture_output=True, text=True, check=False)
    assert made.returncode != 0 and "needs 240 open files" in made.stderr, made
    made = subprocess.run(["sh", "-c", 'ulimit -n 100; exec "$SPILLWAY" serve "$0" --listen 127.0.0.1:0', uri],
                          capture_output=True, text=True, check=False)
    assert made.returncode != 0 and "--max-connections 1 needs 202 open files" in made.stderr, made


run([connections_that_sent_hello_are_small, connections_that_logged_in_are_small,
     few_open_files_lower_the_connections])
