"""Connections that sent only hello: how many a gateway keeps, and the resident memory of each.

10 000 connections have to fit in 400 MB. If the hard limit of open files permits fewer, the test opens as many as it
permits, and bounds the bytes of each.
"""

import json
import resource
import socket
import subprocess
import time

from gateway_lib import Gateway, Server, body_of, message, receive, run

CONNECTIONS, RESIDENT_BYTES = 10000, 400 << 20
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


run([connections_that_sent_hello_are_small, few_open_files_lower_the_connections])
