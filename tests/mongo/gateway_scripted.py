"""The relay in front of a scripted server: what it passes on, answers, refuses and closes."""

import json
import random
import signal
import socket
import struct
import threading
import time
import urllib.request

import bson

from gateway_lib import (COMPRESSED, DEFINITION, MORE_TO_COME, MSG, WAIT_SECONDS, Gateway, Server,
                         body_of, frame, is_closed, message, query, receive, run, wait_until)


def pair(*options, **server_options):
    server = Server(**server_options)
    return server, Gateway(f"mongodb://127.0.0.1:{server.port}/d", *options)


def random_messages():
    """Messages of all sizes: with sequences, long ones too; the last is almost 48 MB."""
    rng = random.Random(1)
    yield message({"ping": 1, "$db": "app"}, request=77)
    for size in (0, 10, 1000, 60000, 70000, 300000, 3000000):
        body = {"insert": "c", "ordered": True, "$db": "app", "comment": rng.randbytes(20)}
        documents = [{"_id": i, "x": rng.randbytes(size)} for i in range(3)]
        yield message(body, [("documents", documents)], request=rng.randrange(1 << 30))
        yield message(body | {"documents": documents}, request=rng.randrange(1 << 30))
    yield message({"$db": "app", "insert": "c"}, request=5)  # the first field is no command
    big = [{"_id": 1, "x": b"y" * 15900000}] * 3
    yield message({"insert": "c", "$db": "app"}, [("documents", big)])


def bytes_pass_unchanged():
    server, gateway = pair()
    sent, got = list(random_messages()), []
    with gateway.connect() as end:
        for data in sent:
            end.sendall(data)
            got.append(receive(end))
        for name in ("slowly", "big"):
            sent.append(message({name: 1, "$db": "app"}))
            end.sendall(sent[-1])
            got.append(receive(end))
    assert server.received == sent
    assert b"".join(server.sent) == b"".join(got)
    gateway.stop()


RELAYED = (
    "abortTransaction", "aggregate", "applyOps", "buildInfo", "bulkWrite", "collMod", "collStats",
    "commitTransaction", "compact", "connectionStatus", "count", "create", "createIndexes",
    "currentOp", "dataSize", "dbStats", "delete", "distinct", "drop", "dropIndexes", "endSessions",
    "explain", "find", "findAndModify", "findandmodify", "getMore", "getParameter", "hostInfo",
    "insert", "killCursors", "killOp", "killSessions", "listDatabases", "listIndexes", "logout",
    "mapReduce", "noSuchCommand", "ping", "planCacheClear", "refreshSessions", "renameCollection",
    "saslContinue", "saslStart", "serverStatus", "update", "usersInfo", "validate")


def without_definitions_all_commands_pass_unchanged():
    """On the gateway's own database, too: with a session, in a transaction, with $changeStream."""
    server, gateway = pair(set_name="rs", recorded=("d", "admin"))
    server.received.clear()
    sent, got = [], []
    more = {"lsid": {"id": bson.Binary(b"s" * 16, 4)}, "txnNumber": bson.Int64(1),
            "pipeline": [{"$changeStream": {}}, {"$out": "other"}], "collection": "c", "maxTimeMS": 9,
            "filter": {"f": 1}, "query": {}, "update": {"$pull": {"f": 1}}, "comment": "spill",
            "writeConcern": {"w": 3}, "readConcern": {"level": "snapshot"}, "apiVersion": "1",
            "$clusterTime": {"clusterTime": bson.Timestamp(1, 1)}, "stmtIds": [1, 2]}
    with gateway.connect() as end:
        for name in RELAYED:
            for database in ("d", "admin"):
                for extra in ({}, more, more | {"autocommit": False, "startTransaction": True}):
                    if name in extra:
                        continue
                    value = "d.c" if name == "renameCollection" else "c"
                    data = message({name: value, "$db": database} | extra,
                                   [("updates", [{"q": {}, "u": {}}])], request=len(sent) + 1)
                    sent.append(data)
                    end.sendall(data)
                    got.append(receive(end))
        assert server.received == sent
        assert b"".join(got) == b"".join(server.sent[-len(got):])
    # What is not relayed: bookkeeping is hidden, whether there are definitions or not.
    count = len(server.received)
    for name, collection in (("find", "spillway.definitions"), ("drop", "spillway.marks")):
        assert gateway.ask({name: collection, "$db": "d"}).get("ok") is not None
    refused = gateway.ask({"insert": "spillway.marks", "$db": "d"}, [("documents", [{}])])
    assert refused["code"] == 13, refused
    assert all(body_of(data).get("insert") != "spillway.marks" for data in server.received[count:])
    gateway.stop()


def pieces_make_messages():
    """One byte at a time, and several messages at once."""
    server, gateway = pair()
    sent = [message({"ping": i, "$db": "app"}, request=i) for i in range(20)]
    with gateway.connect() as end:
        for byte in sent[0]:
            end.sendall(bytes([byte]))
        receive(end)
        end.sendall(b"".join(sent[1:]))
        for i in range(1, 20):
            assert struct.unpack("<i", receive(end)[8:12])[0] == i
    assert server.received == sent
    gateway.stop()


def unanswered_and_exhaust():
    server, gateway = pair()
    with gateway.connect() as end:
        for i in range(3):
            end.sendall(message({"insert": "c", "n": i, "$db": "app"}, flags=MORE_TO_COME))
        end.sendall(message({"exhaust": 1, "$db": "app"}))
        assert [body_of(receive(end))["n"] for _ in range(3)] == [0, 1, 2]
        end.sendall(message({"ping": 1, "$db": "app"}))
        assert body_of(receive(end))["ok"] == 1
    assert [body_of(data).get("n") for data in server.received] == [0, 1, 2, None, None]
    gateway.stop()


def replies_to_unanswered_are_dropped():
    """FerretDB 2.7 replies to a message with moreToCome; then the client would be one reply behind."""
    _, gateway = pair()
    with gateway.connect() as end:
        for i in range(5):
            end.sendall(message({"talkative": 1, "$db": "app"}, flags=MORE_TO_COME, request=10 + i))
            end.sendall(message({"slowly": 1, "$db": "app"}, request=20 + i))
            data = receive(end)
            assert struct.unpack("<i", data[8:12])[0] == 20 + i and "text" in body_of(data)
    gateway.stop()


NEVER = ("setName", "hosts", "me", "primary", "tags", "electionId", "lastWrite", "topologyVersion",
         "setVersion", "compression", "secondary")


def hello_is_the_gateways():
    server, gateway = pair()
    for name, primary in (("hello", "isWritablePrimary"), ("isMaster", "ismaster"),
                          ("ismaster", "ismaster")):
        ask = {name: 1, "helloOk": True, "compression": ["zlib"], "loadBalanced": True}
        answer = gateway.ask(ask | {"$db": "admin"})
        assert answer[primary] is True and answer["helloOk"] and answer["ok"] == 1, answer
        assert answer["maxWireVersion"] == 25 and answer["minWireVersion"] == 0, answer
        assert answer["maxMessageSizeBytes"] == 48000000, answer
        assert answer["maxBsonObjectSize"] == 16777216 and "localTime" in answer, answer
        assert answer["logicalSessionTimeoutMinutes"] == 30 and answer["connectionId"] > 0, answer
        assert "serviceId" not in answer and "msg" not in answer, answer  # it is standalone
        assert not set(NEVER) & set(answer), answer
        with gateway.connect() as end:
            end.sendall(query(ask, request=9))
            data = receive(end)
            assert struct.unpack("<ii", data[8:16]) == (9, 1), "no OP_REPLY to request 9"
            same = body_of(data)
            for key in ("localTime", "connectionId"):
                del same[key], answer[key]
            assert same == answer
    assert server.received == []
    gateway.stop()


def hello_of_a_set():
    _, gateway = pair(set_name="rs")
    answer = gateway.ask({"hello": 1, "$db": "admin"})
    assert answer["msg"] == "isdbgrid" and not set(NEVER) & set(answer), answer
    assert "serviceId" not in answer
    # Transactions are the server's business here.
    assert gateway.ask({"insert": "c", "startTransaction": True, "autocommit": False,
                        "$db": "app"})["ok"] == 1
    gateway.stop()


def options_of_hello():
    _, gateway = pair("--present", "mongos", "--max-reply", "167772160")
    answer = gateway.ask({"hello": 1, "$db": "admin"})
    assert answer["msg"] == "isdbgrid" and answer["maxMessageSizeBytes"] == 167772160, answer
    gateway.stop()
    _, gateway = pair("--present", "standalone", set_name="rs")
    assert "msg" not in gateway.ask({"hello": 1, "$db": "admin"})
    gateway.stop()


def authentication_is_relayed():
    _, gateway = pair()
    ask = {"hello": 1, "saslSupportedMechs": "admin.ada", "compression": ["zlib"], "speculativeAuthenticate":
           {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=ada,r=x", "db": "admin"}}
    answer = gateway.ask(ask | {"$db": "admin"})
    assert answer["saslSupportedMechs"] == ["SCRAM-SHA-256"], answer
    assert answer["speculativeAuthenticate"]["payload"] == b"x", answer
    assert not set(NEVER) & set(answer), answer
    with gateway.connect() as end:
        end.sendall(query(ask))
        assert body_of(receive(end))["speculativeAuthenticate"]["payload"] == b"x"
        end.sendall(message({"saslContinue": 1, "payload": b"", "$db": "admin"}))
        assert body_of(receive(end))["done"] is True
    x509 = {"authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external"}
    refused = gateway.ask(x509)
    assert refused["code"] == 18 and "SCRAM-SHA-256" in refused["errmsg"], refused
    answer = gateway.ask({"hello": 1, "speculativeAuthenticate": x509, "$db": "admin"})
    assert "speculativeAuthenticate" not in answer and answer["ok"] == 1, answer
    gateway.stop()


def refusals():
    server, gateway = pair()
    answer = gateway.ask({"insert": "c", "startTransaction": True, "autocommit": False,
                          "$db": "app"}, [("documents", [{"x": b"y" * 100000}])])
    assert answer["code"] == 20 and answer["codeName"] == "IllegalOperation", answer
    with gateway.connect() as end:
        end.sendall(query({"find": "c"}, "app.c"))
        assert body_of(receive(end))["code"] == 352
        end.sendall(query({"buildInfo": 1}, "admin.$cmd"))
        assert body_of(receive(end))["code"] == 352
    assert server.received == []
    assert '"code" : 352' in gateway.log_text()
    gateway.stop()


def numbered(name, txn, session=b"a" * 16, sequences=()):
    return message({name: "c", "lsid": {"id": bson.Binary(session, 4)}, "txnNumber": bson.Int64(txn),
                    "$db": "app"}, sequences)


def repeated_writes_are_made_once():
    """In front of a standalone server, which ignores the numbers, and only there."""
    server, gateway = pair("--present", "mongos")
    first = numbered("insert", 5)
    with gateway.connect() as one, gateway.connect() as other, gateway.connect() as third:
        one.sendall(first)
        answer = body_of(receive(one))
        for end in (one, other):
            end.sendall(first)
            assert body_of(receive(end)) == answer
        assert len(server.received) == 1
        other.sendall(numbered("insert", 4))
        assert body_of(receive(other))["code"] == 225
        other.sendall(numbered("insert", 5, session=b"b" * 16))
        assert body_of(receive(other))["ok"] == 1
        long = numbered("insert", 6, sequences=[("documents", [{"x": b"y" * 300000}])])
        for _ in range(2):
            other.sendall(long)
            assert body_of(receive(other))["ok"] == 1
        one.sendall(numbered("cut", 7))
        assert is_closed(one)
        third.sendall(numbered("wait", 1, session=b"c" * 16))
        wait_until("the command has arrived", lambda: len(server.received) == 5)
        for again in (numbered("cut", 7), numbered("wait", 1, session=b"c" * 16)):
            other.sendall(again)
            answer = body_of(receive(other))
            assert answer["code"] == 91 and "errorLabels" not in answer, answer
        server.may_answer.set()
        assert body_of(receive(third))["ok"] == 1
    assert len(server.received) == 5
    gateway.stop()
    server, gateway = pair("--present", "mongos", set_name="rs")
    for _ in range(2):
        assert gateway.ask(body_of(first))["ok"] == 1
    assert len(server.received) == 2
    gateway.stop()


def malformed_messages_close():
    server, gateway = pair()
    good = message({"ping": 1, "$db": "app"})
    long = message({"insert": "c", "$db": "app"}, [("documents", [{"x": b"y" * 100000}])])
    bad = [struct.pack("<iiii", length, 1, 0, MSG) for length in (-1, 0, 15, 48000001, 2**31 - 1)]
    bad += [frame(good[16:], opcode) for opcode in (COMPRESSED, 0, 2001, 2006)]
    bad += [good[:16] + b"\x08\0\0\0" + good[20:], long[:16] + b"\x08\0\0\0" + long[20:],
            good[:20] + b"\x07" + good[21:], frame(good[16:] + good[20:]), frame(b""),
            query({"hello": 1, "x": {"y": 1}}).replace(b"\x10y\0", b"\x99y\0"),
            message({"ping": 1}), frame(good[16:-3] + b"\xff\xff\0"),
            good[:21] + struct.pack("<i", 1 << 30) + good[25:]]
    for data in bad:
        with gateway.connect() as end:
            end.sendall(data)
            assert is_closed(end), data[:40]
    for size in (1, 15, 17, len(good) - 1):
        gateway.connect().sendall(good[:size])  # and the connection ends
    gateway.connect().sendall(long[:50000])
    assert server.received == []
    assert gateway.ask({"ping": 1, "$db": "app"})["ok"] == 1
    assert "malformed message" in gateway.log_text()
    gateway.stop()


def slow_clients_are_closed():
    _, gateway = pair("--header-timeout", "1")
    good = message({"ping": 1, "$db": "app"})
    long = message({"insert": "c", "$db": "app"}, [("documents", [{"x": b"y" * 100000}])])
    idle = gateway.connect()
    idle.sendall(good)
    receive(idle)
    slow = []
    for part in (b"", good[:3], good[:30], long[:1000], long[:90000]):
        slow.append(gateway.connect())
        slow[-1].sendall(part)
    assert all(is_closed(end) for end in slow)
    idle.sendall(good)  # between messages a client may pause
    assert body_of(receive(idle))["ok"] == 1
    gateway.stop()


def broken_upstream_closes():
    server, gateway = pair()
    with gateway.connect() as end, gateway.connect() as idle:
        idle.sendall(message({"ping": 1, "$db": "app"}))
        receive(idle)
        end.sendall(message({"cut": 1, "$db": "app"}))
        assert is_closed(end)
        server.close_all()
        assert is_closed(idle)
    assert gateway.ask({"ping": 1, "$db": "app"})["ok"] == 1
    gateway.stop()


def memory_is_bounded():
    server, gateway = pair("--memory", "1MiB")
    buffered = message({"update": 1, "x": b"y" * 2000000, "$db": "app"})
    streamed = message({"insert": "c", "$db": "app"}, [("documents", [{"x": b"y" * 9000000}])])
    with gateway.connect() as end:
        end.sendall(buffered)
        answer = body_of(receive(end))
        assert answer["code"] == 462, answer
        assert answer["errorLabels"] == ["SystemOverloadedError", "RetryableError"], answer
        end.sendall(message({"update": 1, "x": b"y" * 2000000, "$db": "app"}, flags=MORE_TO_COME))
        end.sendall(streamed)
        assert body_of(receive(end))["ok"] == 1
    assert server.received == [streamed]
    gateway.stop()


def replies_give_their_memory_back():
    """The next command comes while a long reply is unsent."""
    found = {"cursor": {"id": bson.Int64(0), "ns": "d.posts",
                        "firstBatch": [{"_id": 1, "x": "y" * 150000}]}, "ok": 1.0}
    _, gateway = pair("--memory", "2MiB", definitions=[DEFINITION], recorded=("d",),
                      script={"find": lambda _: found})
    with gateway.connect() as end:
        end.sendall(message({"find": "posts", "$db": "d"}) * 40)
        for _ in range(40):
            answer = body_of(receive(end))
            assert answer["ok"] == 1, answer
    gateway.stop()


class StuckServer(Server):
    """It reads no further until it may answer."""

    def answer_app(self, name, data, request):
        self.may_answer.wait()
        return super().answer_app(name, data, request)


def unanswered_commands_do_not_fill_memory():
    """A server that is slower than commands without a reply stops the client, and gets all of them."""
    server = StuckServer()
    gateway = Gateway(f"mongodb://127.0.0.1:{server.port}/d", "--header-timeout", "1")
    sent = [message({"insert": "c", "x": b"y" * 60000, "$db": "app"}, flags=MORE_TO_COME, request=i)
            for i in range(2000)]
    data, at = memoryview(b"".join(sent)), 0
    with gateway.connect() as end:
        end.settimeout(3)
        try:
            while at < len(data):
                at += end.send(data[at:at + 65536])
        except TimeoutError:
            pass
        assert at < 60 << 20, at  # the buffers of four sockets, and less than 1 MiB in the gateway
        server.may_answer.set()
        end.settimeout(WAIT_SECONDS)
        end.sendall(data[at:])
        end.sendall(message({"ping": 1, "$db": "app"}))
        assert body_of(receive(end))["ok"] == 1
    assert server.received[:-1] == sent
    gateway.stop()


def unanswered(size, request):
    """A long one is collected, and handed to the upstream connection as a whole."""
    return message({"bulkWrite": 1, "x": b"y" * size, "$db": "app"}, flags=MORE_TO_COME, request=request)


def a_client_that_ends_loses_nothing():
    """The server gets what a client without replies has sent: also over a connection not yet opened."""
    for warm, size in ((True, 1 << 20), (False, 10), (False, 1 << 20)):
        server, gateway = pair()
        sent = [unanswered(size, request) for request in range(20)]
        for data in sent:
            with gateway.connect() as end:
                if warm:
                    end.sendall(message({"ping": 1, "$db": "other"}))
                    receive(end)
                end.sendall(data)
        wait_until("all have arrived", lambda: len(server.received) >= len(sent))
        assert sorted(server.received) == sorted(sent), (warm, size)
        gateway.stop()


def translated_commands_of_a_client_that_ends_are_made():
    """A worker needs several round trips for a command without a reply."""
    found = {"cursor": {"id": bson.Int64(0), "ns": "d.posts", "firstBatch": []}, "ok": 1.0}
    may_go_on, updates = threading.Event(), []

    def update(body):
        updates.append(body)
        may_go_on.wait()
        return {"n": 1, "nModified": 1, "ok": 1.0}
    server, gateway = pair(definitions=[DEFINITION], recorded=("d",),
                           script={"find": lambda _: found, "update": update})
    statement = {"q": {"_id": 1}, "u": {"$push": {"f": 1}}}
    with gateway.connect() as end:
        end.sendall(message({"update": "posts", "updates": [statement, statement | {"q": {"_id": 2}}],
                             "$db": "d"}, flags=MORE_TO_COME))
        wait_until("the first step is in progress", lambda: updates)
    time.sleep(0.3)  # the gateway sees the end
    may_go_on.set()
    wait_until("both are updated",
               lambda: {body["updates"][0]["q"]["_id"] for body in updates} == {1, 2})
    gateway.stop()


def stuck_gateway(*options, behind=()):
    """A server that reads no further, and a client that has sent it 16 MB, and messages behind them."""
    server = StuckServer()
    gateway = Gateway(f"mongodb://127.0.0.1:{server.port}/d", *options)
    sent = [unanswered(10, 1), unanswered(16 << 20, 2), *behind]
    end = gateway.connect()
    end.sendall(b"".join(sent))
    wait_until("the server is stuck", lambda: len(server.received) == 1)
    return server, gateway, end, sent


def a_stuck_server_gets_all_of_a_client_that_has_ended():
    server, gateway, end, sent = stuck_gateway(behind=[unanswered(1000, 3)])
    end.close()
    time.sleep(0.5)  # the gateway sees the end
    server.may_answer.set()
    wait_until("all have arrived", lambda: len(server.received) == len(sent))
    assert server.received == sent
    gateway.stop()


def drain_sends_what_is_unsent():
    server, gateway, end, sent = stuck_gateway()
    gateway.send_signal(signal.SIGTERM)
    wait_until("the gateway does not listen any more", lambda: not listens(gateway))
    time.sleep(0.5)
    server.may_answer.set()
    assert is_closed(end)
    wait_until("all have arrived", lambda: len(server.received) == len(sent))
    assert server.received == sent
    assert gateway.process.wait() == 0


def a_server_that_stays_stuck_is_left():
    """After ten seconds without progress, or when the gateway ends."""
    server, gateway, end, _ = stuck_gateway("--drain", "3600")
    end.close()
    wait_until("the connection is left", lambda: '"messages lost"' in gateway.log_text())
    server.may_answer.set()
    gateway.stop()
    server, gateway, end, _ = stuck_gateway("--drain", "3600")
    end.close()
    for _ in range(2):
        gateway.send_signal(signal.SIGTERM)
        wait_until("the drain begins", lambda: '"event" : "drain"' in gateway.log_text())
    assert gateway.process.wait(9) == 0
    server.may_answer.set()


def slow_readers_do_not_fill_memory():
    """A client that does not read its 44 MB reply stops the upstream connection."""
    server, gateway = pair()
    with gateway.connect() as slow:
        slow.sendall(message({"big": 1, "$db": "app"}))
        assert gateway.ask({"ping": 1, "$db": "app"})["ok"] == 1
        with open(f"/proc/{gateway.process.pid}/statm", encoding="ascii") as statm:
            resident = int(statm.read().split()[1]) * 4096
        assert resident < 500 << 20, resident  # with a sanitizer, too
        assert len(receive(slow)) > 44 << 20
    gateway.stop()


def connections_are_limited():
    for option in ("--max-connections", "--max-per-address"):
        _, gateway = pair(option, "2")
        held = [gateway.connect() for _ in range(2)]
        for end in held:
            end.sendall(message({"hello": 1, "$db": "admin"}))
            receive(end)
        with gateway.connect() as third:
            assert is_closed(third)
        held[0].close()
        wait_until("a connection is free",
                   lambda: not is_refused(gateway))
        assert f"{option} is reached" in gateway.log_text()
        gateway.stop()


def is_refused(gateway):
    try:
        return gateway.ask({"hello": 1, "$db": "admin"})["ok"] != 1
    except (EOFError, ConnectionError):
        return True


def listens(gateway):
    try:
        socket.create_connection(("127.0.0.1", gateway.port)).close()
        return True
    except ConnectionError:
        return False


def drain_lets_commands_end():
    server, gateway = pair()
    with gateway.connect() as busy, gateway.connect() as idle:
        idle.sendall(message({"ping": 1, "$db": "app"}))
        receive(idle)
        busy.sendall(message({"wait": 1, "$db": "app"}))
        wait_until("the command has arrived", lambda: len(server.received) == 2)
        gateway.send_signal(signal.SIGTERM)
        assert is_closed(idle)
        wait_until("the gateway does not listen any more", lambda: not listens(gateway))
        server.may_answer.set()
        assert body_of(receive(busy))["ok"] == 1
        assert is_closed(busy)
    assert gateway.process.wait() == 0


def drain_ends():
    """The time of --drain ends a command that does not end; so does a second signal."""
    for drain, signals in (("0", 1), ("3600", 2)):
        server, gateway = pair("--drain", drain)
        with gateway.connect() as busy:
            busy.sendall(message({"wait": 1, "$db": "app"}))
            wait_until("the command has arrived", lambda: len(server.received) == 1)
            for _ in range(signals):
                gateway.send_signal(signal.SIGTERM)
                wait_until("the drain begins", lambda: '"event" : "drain"' in gateway.log_text())
            assert is_closed(busy)
        assert gateway.process.wait() == 0


def failover_is_followed():
    first, second = Server("rs"), Server("rs")
    first.members = second.members = [first, second]
    second.is_primary = False
    gateway = Gateway(f"mongodb://127.0.0.1:{first.port}/d?replicaSet=rs&heartbeatFrequencyMS=500")
    with gateway.connect() as end:
        end.sendall(message({"ping": 1, "$db": "app"}))
        receive(end)
        first.is_primary, second.is_primary = False, True
        assert is_closed(end)  # it was connected to the old primary
    assert gateway.ask({"ping": 1, "$db": "app"})["ok"] == 1
    assert len(first.received) == 1 and len(second.received) == 1
    gateway.stop()


def metrics():
    server = Server()
    gateway = Gateway(f"mongodb://127.0.0.1:{server.port}/d?serverSelectionTimeoutMS=500",
                      "--metrics", "0")
    port = gateway.metrics_port()
    gateway.ask({"ping": 1, "$db": "app"})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
        assert answer.read() == b"ok\n"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    assert "spillway_gateway_commands_relayed_total 1" in lines, lines
    assert "spillway_gateway_primary 1" in lines, lines
    server.listener.close()
    server.close_all()

    def is_ill():
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz").close()
            return False
        except urllib.error.HTTPError as error:
            return error.code == 503
    wait_until("there is no primary", is_ill)
    assert gateway.ask({"hello": 1, "$db": "admin"})["ok"] == 1  # from what it knows
    gateway.stop()


def slow_commands_are_logged():
    """Name, namespace, class and time: nothing else of a command."""
    server, gateway = pair("--slow-ms", "1")
    with gateway.connect() as end:
        end.sendall(message({"find": "c", "filter": {"a": "private"}, "$db": "app"}))
        wait_until("the command has arrived", lambda: len(server.received) == 1)
        receive(end)
        end.sendall(message({"wait": "private", "$db": "app"}))
        wait_until("the next command has arrived", lambda: len(server.received) == 2)
        time.sleep(0.01)
        server.may_answer.set()
        receive(end)
    wait_until("it is logged", lambda: '"command" : "other"' in gateway.log_text())
    lines = [json.loads(line) for line in gateway.log_text().splitlines()]
    slow = [line for line in lines if line["event"] == "slow"]
    assert "private" not in gateway.log_text(), lines
    assert set(slow[-1]) == {"t", "event", "command", "ns", "class", "ms"}, slow
    assert (slow[-1]["command"], slow[-1]["ns"], slow[-1]["class"]) == ("other", "app", "relayed"), slow
    assert slow[-1]["ms"] >= 1, slow
    gateway.stop()


run([bytes_pass_unchanged, without_definitions_all_commands_pass_unchanged, pieces_make_messages, unanswered_and_exhaust,
     replies_to_unanswered_are_dropped, hello_is_the_gateways,
     hello_of_a_set, options_of_hello, authentication_is_relayed, refusals, repeated_writes_are_made_once,
     malformed_messages_close,
     slow_clients_are_closed, broken_upstream_closes, memory_is_bounded, replies_give_their_memory_back,
     slow_readers_do_not_fill_memory, unanswered_commands_do_not_fill_memory,
     a_client_that_ends_loses_nothing, translated_commands_of_a_client_that_ends_are_made,
     a_stuck_server_gets_all_of_a_client_that_has_ended, drain_sends_what_is_unsent, a_server_that_stays_stuck_is_left,
     connections_are_limited, drain_lets_commands_end, drain_ends,
     failover_is_followed, metrics, slow_commands_are_logged])
