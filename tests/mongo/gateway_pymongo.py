"""pymongo through the relay, against a server with users: what an application does every day."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pymongo

from gateway_lib import Gateway, run, wait_until

URI = os.environ["SPILLWAY_TEST_AUTH_URI"]
DATABASE = f"gateway_{os.getpid()}"
USER, PASSWORD = re.match(r"mongodb://(.*?):(.*?)@", URI).groups()
gateway = Gateway(URI.replace("/?", "/").rstrip("/") + f"/{DATABASE}?authSource=admin")


def client(user=USER, password=PASSWORD, **options):
    return pymongo.MongoClient("127.0.0.1", gateway.port, username=user, password=password,
                               authSource="admin", serverSelectionTimeoutMS=20000, **options)


def users_log_in():
    with client() as one:
        assert one.admin.command("ping")["ok"] == 1
    try:
        with client(password="wrong") as one:
            one.admin.command("ping")
        raise AssertionError("a wrong password is accepted")
    except pymongo.errors.OperationFailure as error:
        assert error.code == 18, error
    try:
        with pymongo.MongoClient("127.0.0.1", gateway.port) as one:
            one[DATABASE].things.find_one()
        raise AssertionError("nobody may read")
    except pymongo.errors.OperationFailure as error:
        assert error.code in (13, 18), error


def documents_are_written_and_read():
    with client() as through, pymongo.MongoClient(URI) as direct:
        things = through[DATABASE].things
        things.insert_many([{"_id": i, "x": "y" * 1000} for i in range(2000)])
        assert things.update_many({"_id": {"$lt": 10}}, {"$set": {"z": 1}}).modified_count == 10
        assert things.find_one_and_update({"_id": 1}, {"$inc": {"z": 1}}, new=True)["z"] == 2
        assert things.delete_one({"_id": 0}).deleted_count == 1
        done = things.bulk_write([pymongo.InsertOne({"_id": -1}), pymongo.DeleteOne({"_id": 2}),
                                  pymongo.UpdateOne({"_id": 3}, {"$set": {"z": 5}})])
        assert (done.inserted_count, done.deleted_count, done.modified_count) == (1, 1, 1)
        assert things.count_documents({"z": {"$exists": True}}) == 8
        assert things.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}]).next()["n"] == 1999
        same = direct[DATABASE].things
        assert list(things.find(sort=[("_id", 1)], batch_size=50)) == list(same.find(
            sort=[("_id", 1)]))


def cursors_and_sessions():
    with client() as through, pymongo.MongoClient(URI) as direct:
        things = through[DATABASE].things
        with through.start_session() as session:
            cursor = things.find({}, batch_size=10, session=session)
            assert len([next(cursor) for _ in range(35)]) == 35
            cursor.close()
        # A server need not support exhaust cursors: the relay gives what the server gives.
        counts = [sum(1 for _ in one[DATABASE].things.find(
            {}, batch_size=10, cursor_type=pymongo.CursorType.EXHAUST)) for one in (through, direct)]
        assert counts[0] == counts[1] > 0, counts


def long_messages():
    with client() as through:
        long = through[DATABASE].long
        data = [{"_id": i, "x": os.urandom(2 << 20)} for i in range(24)]
        long.insert_many(data)  # 48 MB, in several messages
        assert list(long.find(sort=[("_id", 1)])) == data


def unacknowledged_writes():
    with client() as through:
        things = through[DATABASE].get_collection("w", write_concern=pymongo.WriteConcern(w=0))
        for i in range(100):
            things.insert_one({"_id": i})
        acknowledged = through[DATABASE].w
        wait_until("all are written", lambda: acknowledged.count_documents({}) == 100)


def many_threads():
    with client(maxPoolSize=50) as through:
        counter = through[DATABASE].counter
        counter.insert_one({"_id": 1, "n": 0})
        with ThreadPoolExecutor(50) as pool:
            list(pool.map(lambda _: counter.update_one({"_id": 1}, {"$inc": {"n": 1}}), range(500)))
        assert counter.find_one()["n"] == 500


try:
    run([users_log_in, documents_are_written_and_read, cursors_and_sessions, long_messages,
         unacknowledged_writes, many_threads])
    gateway.stop()
finally:
    with pymongo.MongoClient(URI) as cleaner:
        cleaner.drop_database(DATABASE)
