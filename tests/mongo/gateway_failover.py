"""Failover, transactions and load balancing through the gateway, in front of a scripted replica set.

No replica set is available to the tests. So these show what the gateway does with a server's answers;
they do not show what a server answers.
"""

import itertools

import bson
import pymongo
from pymongo import InsertOne, UpdateOne

from gateway_lib import Gateway, Server, body_of, is_closed, message, receive, run, wait_until

DEFINITION = {"_id": "posts.f", "imports": [], "entry": {
    "name": "posts.f", "layout": "outlier", "keep": "newest", "collection": "posts", "array": "f",
    "pageCollection": "posts.f.pages", "pageArray": "f", "pageOwner": "owner", "pageNumber": "page",
    "bounds": {"threshold": 3, "pageCapacity": 2, "headBytesMax": 1048576, "pageBytesMax": 1048576},
    "largest": {"threshold": 3, "pageCapacity": 2, "headBytesMax": 1048576, "pageBytesMax": 1048576},
    "opWindow": 64, "countField": "", "overflowField": "", "pagesField": "", "pageCount": ""}}
# The head of a managed array with one page.
HEAD = {"_id": 1, "f": [2, 3], "spill": {"f": {
    "epoch": bson.Int64(5), "rev": bson.Int64(9), "first": bson.Int64(2), "pages": bson.Int64(1),
    "low": bson.Int64(0), "removed": bson.Int64(0), "n": bson.Int64(0)}}}
STATE_CHANGES = (189, 10107, 11600, 11602, 13435, 13436)
LSID = {"id": bson.Binary(b"s" * 16, 4)}


def no_primary(code):
    return {"ok": 0.0, "code": code, "codeName": "X", "errmsg": "not primary",
            "errorLabels": ["RetryableWriteError"], "topologyVersion":
            {"processId": bson.ObjectId(), "counter": bson.Int64(1)}}


def cursor(namespace, *documents, identifier=0):
    return {"cursor": {"id": bson.Int64(identifier), "ns": namespace, "firstBatch": list(documents)},
            "ok": 1.0}


def start(*options, members=1, uri_options="", **server_options):
    """The members of a set, the first one primary, and a gateway in front of it."""
    servers = [Server("rs", **server_options) for _ in range(members)]
    for server in servers:
        server.members = servers
        server.is_primary = server is servers[0]
    gateway = Gateway(f"mongodb://127.0.0.1:{servers[0].port}/d?replicaSet=rs&"
                      f"heartbeatFrequencyMS=500&serverSelectionTimeoutMS=20000{uri_options}", *options)
    return servers, gateway


def step_down(servers):
    """The second member becomes the primary."""
    servers[0].is_primary, servers[1].is_primary = False, True


def names_of(server):
    """The recorded commands, without those by which drivers end their sessions."""
    names = [next(iter(body_of(data))) for data in server.received]
    return [name for name in names if name != "endSessions"]


def errors_of_the_server_pass_unchanged():
    """The driver reads the codes and labels of a step-down, and the gateway changes none."""
    for code in STATE_CHANGES:
        (server,), gateway = start(script={"insert": lambda _, code=code: no_primary(code)})
        with gateway.connect() as end:
            end.sendall(message({"insert": "c", "documents": [{}], "$db": "app"}, request=3))
            assert receive(end) == server.sent[-1]
            end.sendall(message({"ping": 1, "$db": "app"}))  # the connection stays
            assert body_of(receive(end))["ok"] == 1
        gateway.stop()


def update(operation, more=None):
    return message({"update": "posts", "$db": "d", "updates": [{"q": {"_id": 1}, "u": operation}]} |
                   (more or {}), request=7)


def a_plain_statement_tells_of_a_step_down():
    """The gateway's statement for a plain array is refused: the driver gets code and labels."""
    for code in STATE_CHANGES:
        servers, gateway = start(definitions=[DEFINITION], recorded=("d",),
                                 script={"update": lambda _, code=code: no_primary(code)})
        for more in ({}, {"lsid": LSID, "txnNumber": bson.Int64(1)}):
            with gateway.connect() as end:
                end.sendall(update({"$push": {"f": 1}}, more))
                answer = body_of(receive(end))
            assert answer["ok"] == 0 and answer["code"] == code, answer
            assert answer["errorLabels"] == ["RetryableWriteError"], answer
        assert names_of(servers[0]).count("update") == 2
        gateway.stop()


def an_unclear_error_is_not_followed_by_another_try():
    """The server may have made the statement: the driver decides, and the gateway sends it once."""
    for code in (1, 6, 50, 89, 262, 9001):
        unclear = {"ok": 0.0, "code": code, "codeName": "Unclear", "errmsg": "unclear"}
        statement = {"ok": 1.0, "n": 0, "writeErrors": [{"index": 0, "code": code, "errmsg": "unclear"}]}
        for reply in (unclear, statement):
            servers, gateway = start(definitions=[DEFINITION], recorded=("d",),
                                     script={"update": lambda _, reply=reply: reply})
            for more in ({}, {"lsid": LSID, "txnNumber": bson.Int64(1)}):
                with gateway.connect() as end:
                    end.sendall(update({"$push": {"f": 1}}, more))
                    answer = body_of(receive(end))
                assert answer == reply, answer
            assert names_of(servers[0]).count("update") == 2
            gateway.stop()


def a_statement_in_progress_ends_with_the_primary():
    """The server breaks while it has the statement: the client's connection is closed, and the next
    one reaches the new primary."""
    (first, second), gateway = start(members=2, definitions=[DEFINITION], recorded=("d",),
                                     script={"update": lambda _: None})
    second.script = {"update": lambda _: {"ok": 1.0, "n": 1, "nModified": 1}}
    step_down([first, second])
    with gateway.connect() as end:
        first.is_primary, second.is_primary = True, False
        end.sendall(update({"$push": {"f": 1}}))
        assert is_closed(end)
    step_down([first, second])

    def reaches_the_second():
        try:
            with gateway.connect() as end:
                end.sendall(update({"$push": {"f": 1}}))
                return body_of(receive(end)).get("n") == 1
        except (EOFError, ConnectionError):
            return False
    wait_until("the second member is used", reaches_the_second)
    assert names_of(second)[-1] == "update"
    gateway.stop()


def managed_script(step):
    """The guarded statement finds no plain array, the look finds HEAD, and `step` answers the library."""
    return {"update": lambda _: {"ok": 1.0, "n": 0, "nModified": 0},
            "delete": lambda _: {"ok": 1.0, "n": 0},
            "aggregate": lambda body: cursor("d.posts", HEAD),
            "find": lambda body: cursor("d.posts", HEAD), "findAndModify": step}


def an_append_whose_answer_is_lost_is_unknown():
    """The library's step is cut, or interrupted: it may have been made. Only a driver that numbers its
    writes gets a label, because only its retry is recognized."""
    for step in (lambda _: None, lambda _: no_primary(11602), lambda _: no_primary(91)):
        _, gateway = start(definitions=[DEFINITION], recorded=("d",), script=managed_script(step),
                           uri_options="&retryWrites=false")
        for more in ({}, {"lsid": LSID, "txnNumber": bson.Int64(1)}):
            with gateway.connect() as end:
                end.sendall(update({"$push": {"f": 4}}, more))
                answer = body_of(receive(end))
            failure = answer["writeErrors"][0] if "writeErrors" in answer else answer
            assert failure["code"] == 91, answer
            labels = failure.get("errorLabels", [])
            assert labels == (["RetryableWriteError"] if more else []), answer
        gateway.stop()


def transactions_are_relayed():
    """Start, statements, commit and abort with the labels of unknown results, byte by byte."""
    labels = itertools.cycle((["TransientTransactionError"], ["UnknownTransactionCommitResult"], []))
    answers = {name: lambda _: {"ok": 0.0, "code": 91, "errmsg": "x", "errorLabels": next(labels)}
               for name in ("insert", "commitTransaction", "abortTransaction")}
    (server,), gateway = start(recorded=("app", "admin"), script=answers)
    sent, got = [], []
    with gateway.connect() as end:
        for i, name in enumerate(("insert", "find", "commitTransaction", "commitTransaction",
                                  "abortTransaction", "abortTransaction")):
            database = "app" if i < 2 else "admin"
            sent.append(message({name: "c" if i < 2 else 1, "$db": database, "lsid": LSID,
                                 "txnNumber": bson.Int64(4), "autocommit": False} |
                                ({"startTransaction": True} if i == 0 else {}), request=i + 1))
            end.sendall(sent[-1])
            got.append(receive(end))
    assert server.received[-len(sent):] == sent and server.sent[-len(got):] == got
    assert len(set(server.by[-len(sent):])) == 1, server.by  # one connection: the transaction is pinned to it
    gateway.stop()


def served_arrays_are_refused_in_transactions():
    """With pymongo: code 263, before anything is sent; the transaction can be aborted, and another
    collection is used in it."""
    (server,), gateway = start(definitions=[DEFINITION], recorded=("d", "admin"), script={
        name: lambda _: {"ok": 1.0, "n": 1} for name in
        ("insert", "commitTransaction", "abortTransaction")})
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        posts, other = client.d.posts, client.d.other
        calls = (lambda s: posts.update_one({"_id": 1}, {"$push": {"f": 1}}, session=s),
                 lambda s: posts.update_one({"_id": 1}, {"$set": {"g": 1}}, session=s),
                 lambda s: posts.find_one({"_id": 1}, session=s),
                 lambda s: posts.delete_one({"_id": 1}, session=s),
                 lambda s: posts.find_one_and_update({"_id": 1}, {"$push": {"f": 1}}, session=s),
                 lambda s: list(posts.aggregate([{"$unwind": "$f"}], session=s)))
        for call in calls:
            with client.start_session() as session:
                session.start_transaction()
                other.insert_one({"_id": 1}, session=session)
                before = len(server.received)
                try:
                    call(session)
                    raise AssertionError("it is not refused")
                except pymongo.errors.OperationFailure as error:
                    assert error.code == 263, error
                assert len(server.received) == before
                session.abort_transaction()
        with client.start_session() as session, session.start_transaction():
            other.insert_one({"_id": 2}, session=session)
    assert names_of(server) == ["insert", "abortTransaction"] * len(calls) + ["insert",
                                                                            "commitTransaction"]
    bodies = [body for body in map(body_of, server.received) if "endSessions" not in body]
    assert all(body["autocommit"] is False and "txnNumber" in body for body in bodies)
    gateway.stop()


def load_balanced(gateway, **options):
    return pymongo.MongoClient("127.0.0.1", gateway.port, loadBalanced=True,
                               serverSelectionTimeoutMS=20000, **options)


def cursors_and_transactions_stay_on_their_connection():
    """With pymongo and loadBalanced=true: the driver pins them, and so each has one connection to the
    server, although others are used in between."""
    (server,), gateway = start(recorded=("d", "admin"), script={
        "find": lambda _: cursor("d.c", {"_id": 1}, identifier=77),
        "getMore": lambda _: {"ok": 1.0, "cursor": {"id": bson.Int64(0), "ns": "d.c",
                                                    "nextBatch": [{"_id": 2}]}},
        "insert": lambda _: {"ok": 1.0, "n": 1}, "commitTransaction": lambda _: {"ok": 1.0},
        "killCursors": lambda _: {"ok": 1.0, "cursorsKilled": [77]}})
    answer = gateway.ask({"hello": 1, "loadBalanced": True, "$db": "admin"})
    again = gateway.ask({"hello": 1, "loadBalanced": True, "$db": "admin"})
    assert isinstance(answer["serviceId"], bson.ObjectId), answer
    assert answer["serviceId"] == again["serviceId"] and answer["msg"] == "isdbgrid"
    with load_balanced(gateway) as client:
        reading = client.d.c.find(batch_size=1)
        assert next(reading)["_id"] == 1
        with client.start_session() as session, session.start_transaction():
            client.d.other.insert_one({"_id": 1}, session=session)
            client.d.other.insert_one({"_id": 2}, session=session)
        assert next(reading)["_id"] == 2
        unread = client.d.c.find(batch_size=1)
        next(unread)
        unread.close()
    by_name = {}
    for data, by in zip(server.received, server.by):
        name = next(iter(body_of(data)))
        by_name.setdefault(name, []).append(by)
    assert by_name["getMore"] == by_name["find"][:1], by_name
    assert by_name["killCursors"] == by_name["find"][1:], by_name
    assert set(by_name["insert"]) == set(by_name["commitTransaction"]), by_name
    assert by_name["insert"][0] != by_name["find"][0], by_name
    gateway.stop()


def a_standalone_server_is_not_load_balanced():
    """Drivers retry writes with loadBalanced=true, and a standalone server would make them twice."""
    gateway = Gateway(f"mongodb://127.0.0.1:{Server().port}/d")
    assert "serviceId" not in gateway.ask({"hello": 1, "loadBalanced": True, "$db": "admin"})
    with load_balanced(gateway) as client:
        try:
            client.d.c.find_one()
            raise AssertionError("the driver starts")
        except pymongo.errors.PyMongoError as error:
            assert "load balanc" in str(error), error
    gateway.stop()


def a_client_bulk_write_of_a_driver():
    """pymongo's client.bulk_write, which sends the command bulkWrite because hello says 8.0."""
    if not hasattr(pymongo.MongoClient, "bulk_write"):
        return
    (server,), gateway = start(definitions=[DEFINITION], recorded=("d",), script={
        "insert": lambda body: {"ok": 1.0, "n": len(body.get("stmtIds", [1]))},
        "update": lambda _: {"ok": 1.0, "n": 1, "nModified": 1}})
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        done = client.bulk_write([
            InsertOne({"_id": 1, "f": [1]}, namespace="d.posts"),
            InsertOne({"_id": 2}, namespace="d.posts"), InsertOne({"_id": 2}, namespace="d.other"),
            UpdateOne({"_id": 1}, {"$push": {"f": 2}}, namespace="d.posts"),
            UpdateOne({"_id": 2}, {"$set": {"g": 2}}, namespace="d.other")], verbose_results=True)
    assert (done.inserted_count, done.matched_count, done.modified_count) == (3, 2, 2), done
    assert sorted(done.update_results) == [3, 4] and sorted(done.insert_results) == [0, 1, 2]
    bodies = [body for body in map(body_of, server.received) if "endSessions" not in body]
    assert [(body.get("insert") or body.get("update"), body["stmtIds"]) for body in bodies] == [
        ("posts", [0, 1]), ("other", [2]), ("posts", [3]), ("other", [4])], bodies
    assert len({body["txnNumber"] for body in bodies}) == 1
    gateway.stop()


run([errors_of_the_server_pass_unchanged, a_plain_statement_tells_of_a_step_down,
         an_unclear_error_is_not_followed_by_another_try,
     a_statement_in_progress_ends_with_the_primary, an_append_whose_answer_is_lost_is_unknown,
     transactions_are_relayed, served_arrays_are_refused_in_transactions,
     cursors_and_transactions_stay_on_their_connection, a_standalone_server_is_not_load_balanced,
     a_client_bulk_write_of_a_driver])
