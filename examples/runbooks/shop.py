"""Data for the practices of docs/runbooks: shop.py posts|full|push, on the database of $SPILLWAY_URI.

posts: three posts with 30 comments each. full: one post that fills its document. push: 30 more comments for
each post, as an application with its own driver pushes them. Each command but `push` drops the database first.
"""

import datetime
import os
import sys

import pymongo

client = pymongo.MongoClient(os.environ["SPILLWAY_URI"])
database = client.get_default_database()
posts = database.posts


def comments(first):
    day = datetime.datetime(2026, 3, 1)
    return [{"n": n, "at": day + datetime.timedelta(hours=n)} for n in range(first, first + 30)]


def fill():
    """A document has at most 16 MiB. The padding leaves no room for another comment."""
    text = "x" * 99_000
    posts.insert_one({"_id": "full", "comments": [{"n": n, "text": text} for n in range(169)], "pad": ""})
    size = posts.aggregate([{"$project": {"size": {"$bsonSize": "$$ROOT"}}}]).next()["size"]
    posts.update_one({"_id": "full"}, {"$set": {"pad": "y" * (16 * 1024 * 1024 - size - 50)}})


if sys.argv[1] == "push":
    posts.update_many({}, {"$push": {"comments": {"$each": comments(30)}}})
else:
    client.drop_database(database.name)
    if sys.argv[1] == "full":
        fill()
    else:
        posts.insert_many([{"_id": f"post-{i}", "comments": comments(0)} for i in range(3)])
