"""lag_proxy.py SERVER PORT-FILE LAG-FILE: passes commands on to a server, except replSetGetStatus.

It answers replSetGetStatus like the primary of a replica set whose secondary is behind by as many
seconds as LAG-FILE says; without that file, like a server that is no replica set. No replica set is
available to the tests: this shows what a job does with the answers, not what a server answers.
"""

import datetime
import socket
import struct
import sys
import threading

from gateway_lib import body_of, message, receive

server, port_file, lag_file = sys.argv[1:]
host, port = server.rsplit(":", 1)


def status():
    now = datetime.datetime(2026, 1, 1, 12)
    try:
        with open(lag_file, encoding="ascii") as file:
            lag = datetime.timedelta(seconds=float(file.read()))
    except FileNotFoundError:
        return {"ok": 0.0, "code": 76, "codeName": "NoReplicationEnabled",
                "errmsg": "not running with --replSet"}
    return {"set": "rs", "ok": 1.0, "members": [
        {"name": "a:1", "state": 1, "stateStr": "PRIMARY", "optimeDate": now},
        {"name": "b:1", "state": 2, "stateStr": "SECONDARY", "optimeDate": now - lag}]}


def asks_for_status(data):
    return struct.unpack("<i", data[12:16])[0] == 2013 and "replSetGetStatus" in body_of(data)


def serve(client):
    with client, socket.create_connection((host, int(port))) as upstream:
        try:
            while True:
                data = receive(client)
                if asks_for_status(data):
                    request = struct.unpack("<i", data[4:8])[0]
                    client.sendall(message(status(), response=request))
                    continue
                upstream.sendall(data)
                more_to_come = struct.unpack("<I", data[16:20])[0] & 2
                if struct.unpack("<i", data[12:16])[0] != 2013 or not more_to_come:
                    client.sendall(receive(upstream))
        except (EOFError, OSError):
            pass


listener = socket.create_server(("127.0.0.1", 0))
with open(port_file, "w", encoding="ascii") as out:
    out.write(f"{listener.getsockname()[1]}\n")
while True:
    end, _ = listener.accept()
    threading.Thread(target=serve, args=(end,), daemon=True).start()
