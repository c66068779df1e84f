"""pymongo through the gateway: arrays past 16 MB, bulk writes, deletes."""

import os
import re
import subprocess

import pymongo

from gateway_lib import Gateway, run

URI = os.environ["SPILLWAY_TEST_AUTH_URI"]
DATABASE = f"gateway_arrays_{os.getpid()}"
STORE = URI.replace("/?", "/").rstrip("/") + f"/{DATABASE}?authSource=admin"
ELEMENT = "x" * 1_000_000


def define():
    subprocess.run([os.environ["SPILLWAY"], "define", STORE, "posts.comments", "--preset",
                    "gateway", "--collection", "posts", "--array", "comments", "--threshold",
                    "20", "--page", "10"], check=True, stdout=subprocess.DEVNULL)


define()
gateway = Gateway(STORE)


def client():
    user, password = re.match(r"mongodb://(.*?):(.*?)@", URI).groups()
    return pymongo.MongoClient("127.0.0.1", gateway.port, username=user, password=password,
                               authSource="admin", serverSelectionTimeoutMS=20000)


def refused(code, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except pymongo.errors.OperationFailure as error:
        found = error.code
        if isinstance(error, pymongo.errors.BulkWriteError):
            found = error.details["writeErrors"][0]["code"]
        assert code is None or found == code, error
        return error
    raise AssertionError(f"{call} is not refused")


def an_array_passes_16_mb():
    with client() as through, pymongo.MongoClient(URI) as direct:
        posts = through[DATABASE].posts
        for i in range(0, 24, 6):
            batch = [f"{i + j} {ELEMENT}" for j in range(6)]
            posts.update_one({"_id": 1}, {"$push": {"comments": {"$each": batch}},
                                          "$inc": {"n": 6}}, upsert=True)
        post = posts.find_one({"_id": 1})
        assert [int(c.split()[0]) for c in post["comments"]] == list(range(24))
        assert post["n"] == 24 and "spill" not in post
        assert len(posts.find_one({"_id": 1}, {"comments": {"$slice": -3}})["comments"]) == 3
        assert "comments" not in posts.find_one({"_id": 1}, {"comments": 0})
        assert through[DATABASE].list_collection_names() == ["posts"]
        for collection in ("posts", "posts.comments.pages"):
            for document in direct[DATABASE][collection].aggregate(
                    [{"$project": {"bytes": {"$bsonSize": "$$ROOT"}}}]):
                assert document["bytes"] <= 16 * 1024 * 1024, document


def bulk_writes_and_find_one_and_update():
    with client() as through:
        posts = through[DATABASE].posts
        done = posts.bulk_write(
            [pymongo.UpdateOne({"_id": i % 3 + 10}, {"$push": {"comments": i}}, upsert=True)
             for i in range(90)] + [pymongo.InsertOne({"_id": 20, "comments": [1]}),
                                    pymongo.DeleteOne({"_id": 20})])
        assert (done.upserted_count, done.matched_count, done.deleted_count) == (3, 87, 1)
        for i in range(3):
            assert posts.find_one({"_id": 10 + i})["comments"] == list(range(i, 90, 3))
        after = posts.find_one_and_update({"_id": 10}, {"$push": {"comments": "new"}},
                                          return_document=True)
        assert after["comments"][-1] == "new" and len(after["comments"]) == 31
        before = posts.find_one_and_update({"_id": 10}, {"$push": {"comments": "newer"}})
        assert before == after
        many = posts.update_many({"_id": {"$gte": 10}}, {"$push": {"comments": "all"}})
        assert many.modified_count == 3
        assert sorted(len(p["comments"]) for p in posts.find({"_id": {"$gte": 10}})) == [31, 31, 33]
        error = refused(115, posts.update_one, {"_id": 10}, {"$pull": {"comments": 3}})
        assert error.details["spillway"]["operator"] == "$pull", error.details
        refused(115, posts.find_one, {"comments": 3})


def a_message_of_46_mb():
    if os.environ.get("SPILLWAY_LONG") != "1":
        return
    with client() as through:
        posts = through[DATABASE].posts
        push = pymongo.UpdateOne({"_id": 30}, {"$push": {"comments": ELEMENT}}, upsert=True)
        done = posts.bulk_write([push] * 46)
        assert (done.upserted_count, done.modified_count) == (1, 45)
        assert posts.find_one({"_id": 30})["comments"] == [ELEMENT] * 46
        assert posts.delete_one({"_id": 30}).deleted_count == 1


def damaged_documents_are_errors():
    """A whole read never ends with the head's part of an array that has pages."""
    head = [{"$unset": {"spill.comments.epoch": 1}}, {"$set": {"spill.comments.epoch": "x"}},
            {"$unset": {"spill.comments.pages": 1}}, {"$set": {"spill.comments.pages": 0}},
            {"$set": {"spill.comments.pages": "x"}},
            {"$unset": {"spill.comments.first": 1}}, {"$set": {"spill.comments.first": 0}},
            {"$set": {"spill.comments.removed": 3}}]
    page = [{"$unset": {"spill.epoch": 1}}, {"$unset": {"spill.first": 1}},
            {"$set": {"spill.first": "x"}}, {"$set": {"owner": 9}}, {"$set": {"comments": 3}}]
    with client() as through, pymongo.MongoClient(URI) as direct:
        database = direct[DATABASE]
        pages = database["posts.comments.pages"]
        posts = through[DATABASE].posts
        for collection, _id, damages in ((database.posts, 11, head),
                                         (pages, {"owner": 11, "page": 0}, page)):
            sound = collection.find_one({"_id": _id})
            for damage in damages:
                collection.update_one({"_id": _id}, damage)
                error = refused(None, posts.find_one, {"_id": 11})
                assert "spillway" in str(error), (damage, error)
                refused(None, list, posts.find({"_id": {"$gte": 10}}))
                collection.replace_one({"_id": _id}, sound)
        assert len(posts.find_one({"_id": 11})["comments"]) == 31


def deletes_take_the_pages_along():
    with client() as through, pymongo.MongoClient(URI) as direct:
        assert through[DATABASE].posts.delete_one({"_id": 12}).deleted_count == 1
        pages = direct[DATABASE]["posts.comments.pages"]
        assert pages.count_documents({"owner": 12}) == 0
        assert pages.count_documents({"owner": 11}) > 0
        assert through[DATABASE].posts.delete_many({}).deleted_count == 3
        assert pages.count_documents({}) == 0


try:
    run([an_array_passes_16_mb, bulk_writes_and_find_one_and_update,
         a_message_of_46_mb, damaged_documents_are_errors, deletes_take_the_pages_along])
    gateway.stop()
finally:
    with pymongo.MongoClient(URI) as cleaner:
        cleaner.drop_database(DATABASE)
