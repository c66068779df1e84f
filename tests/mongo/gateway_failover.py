"""Failover, transactions and load balancing through the gateway, in front of a scripted replica set.

No replica set is available to the tests. So these show what the gateway does with a server's answers;
they do not show what a server answers.
"""

import itertools

import bson
import pymongo
from pymongo import InsertOne, UpdateOne

from gateway_lib import (DEFINITION, Gateway, Server, body_of, is_closed, message, receive, run,
                         wait_until)

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


class Recording:
    """A set's record of numbered statements, in front of the answers of a script: a statement that has
    changed something answers its repetition, whatever the repetition asks. `cut`: names of commands whose
    first change is made, and whose answer is lost."""

    def __init__(self, script, cut=()):
        self.script = {name: lambda body, name=name: self.run(name, body) for name in script}
        self.answers = script
        self.cut = set(cut)
        self.record = {}
        self.made = []  # (name, key) of the statements that have changed something

    @staticmethod
    def key_of(body):
        if "txnNumber" not in body:
            return None
        return body["lsid"]["id"], body["txnNumber"], body.get("stmtId", body.get("stmtIds", [0])[0])

    @staticmethod
    def raises_rev(body):
        """Is this the step before a delete, which shows whether the head lives on?"""
        return body.get("update") == [{"$set": {"spill.f.rev": HEAD["spill"]["f"]["rev"] + 1}}]

    def run(self, name, body):
        if self.raises_rev(body):
            return {"ok": 1.0, "value": {"_id": 1}}
        key = self.key_of(body)
        if key is not None and key in self.record:
            return self.record[key]
        answer = self.answers[name](body)
        if answer.get("n", 0) == 0 and not answer.get("value"):
            return answer
        self.made.append((name, key))
        self.record[key] = answer
        if name in self.cut:
            self.cut.remove(name)
            return None
        return answer


def deletes_of(answer):
    """The head of HEAD is deleted by a statement that names its incarnation; a plain one is not found."""
    def run(body):
        deletes = "deletes" in body or body.get("remove")
        return answer if deletes and "'spill.f.epoch': 5" in str(body) else {"ok": 1.0, "n": 0, "value": None}
    return run


def managed_start(answers, **options):
    recording = Recording({"find": lambda _: cursor("d.posts", HEAD | {"length": 2, "bytes": 99}),
                           "aggregate": lambda _: cursor("d.posts", HEAD),
                           "findAndModify": lambda _: {"ok": 1.0, "value": None},
                           "update": lambda _: {"ok": 1.0, "n": 0, "nModified": 0}} | answers, **options)
    (server,), gateway = start(definitions=[DEFINITION], recorded=("d",), script=recording.script)
    return recording, server, gateway


def a_delete_whose_answer_is_lost_deletes_one():
    """The driver repeats it with the same number, which the server knows."""
    for statement in ("delete", "findAndModify"):
        value = {"value": HEAD, "lastErrorObject": {"n": 1}} if statement != "delete" else {}
        recording, _, gateway = managed_start({statement: deletes_of({"ok": 1.0, "n": 1} | value)},
                                              cut=[statement])
        with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
            if statement == "delete":
                assert client.d.posts.delete_one({"kind": "x"}).deleted_count == 1
            else:
                found = client.d.posts.find_one_and_delete({"kind": "x"}, projection={"f": 0})
                assert found["_id"] == 1, found
        assert [name for name, _ in recording.made] == [statement], recording.made
        assert recording.made[0][1] is not None
        gateway.stop()


def deletes_of_a_bulk_have_their_own_numbers():
    recording, _, gateway = managed_start({"delete": deletes_of({"ok": 1.0, "n": 1})}, cut=["delete"])
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        done = client.d.posts.bulk_write([pymongo.DeleteOne({"kind": "x"}), pymongo.DeleteOne({"kind": "y"})])
    assert done.deleted_count == 2, done
    assert [key[2] for _, key in recording.made] == [0, 1], recording.made
    gateway.stop()


def an_update_that_ends_an_array_is_made_once():
    """{$set: {f: null}} on an adopted array without pages: its head's record of sessions ends with it."""
    adopted = HEAD | {"spill": {"f": HEAD["spill"]["f"] | {"pages": bson.Int64(0), "first": bson.Int64(0)}}}
    ended = {"ok": 1.0, "value": {"_id": 1, "f": None}, "lastErrorObject": {"n": 1, "updatedExisting": True}}

    def modify(body):
        return ended if "$unset" in body["update"] else {"ok": 1.0, "value": None, "lastErrorObject": {"n": 0}}
    recording, _, gateway = managed_start({
        "find": lambda _: cursor("d.posts", adopted | {"length": 2, "bytes": 99}),
        "aggregate": lambda _: cursor("d.posts", adopted), "findAndModify": modify}, cut=["findAndModify"])
    recording.script["update"] = lambda body: (
        {"ok": 1.0, "n": 1, "nModified": 1} if recording.key_of(body) in recording.record
        else {"ok": 1.0, "n": 0, "nModified": 0})
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        done = client.d.posts.update_one({"_id": 1}, {"$set": {"f": None}, "$inc": {"g": 1}})
        assert (done.matched_count, done.modified_count) == (1, 1), done
        found = client.d.posts.find_one_and_update({"_id": 1}, {"$set": {"f": None}, "$inc": {"g": 1}})
        assert found["_id"] == 1, found
    assert [name for name, _ in recording.made] == ["findAndModify"] * 2, recording.made
    assert None not in [key for _, key in recording.made]
    gateway.stop()


def a_repeated_upsert_has_the_first_reply():
    """`upserted` and the value come from the server's record, whichever way the statement takes."""
    upserted = {"ok": 1.0, "n": 1, "nModified": 0, "upserted": [{"index": 0, "_id": 7}]}
    modified = {"ok": 1.0, "value": None,
                "lastErrorObject": {"n": 1, "updatedExisting": False, "upserted": 7}}

    def update(body):
        return upserted if body["updates"][0].get("upsert") else {"ok": 1.0, "n": 0, "nModified": 0}

    def modify(body):
        return modified if body.get("upsert") else {"ok": 1.0, "value": None, "lastErrorObject": {"n": 0}}
    push = {"$push": {"f": 1}}
    for query in ({"_id": 7}, {"name": "x"}):
        recording, _, gateway = managed_start({"update": update, "findAndModify": modify,
                                               "find": lambda _: cursor("d.posts")},
                                              cut=["update", "findAndModify"])
        recording.answers["findAndModify"] = lambda body: modify(body) | {"n": int("upsert" in body)}
        with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
            done = client.d.posts.update_one(query, push, upsert=True)
            assert (done.upserted_id, done.matched_count) == (7, 0), done.raw_result
            assert client.d.posts.bulk_write([UpdateOne(query, push, upsert=True)]).upserted_ids == {0: 7}
            assert client.d.posts.find_one_and_update(query, push, upsert=True) is None
        assert [name for name, _ in recording.made] == ["update"] * 2 + ["findAndModify"], recording.made
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
     a_delete_whose_answer_is_lost_deletes_one, deletes_of_a_bulk_have_their_own_numbers,
     an_update_that_ends_an_array_is_made_once, a_repeated_upsert_has_the_first_reply,
     transactions_are_relayed, served_arrays_are_refused_in_transactions,
     cursors_and_transactions_stay_on_their_connection, a_standalone_server_is_not_load_balanced,
     a_client_bulk_write_of_a_driver])
