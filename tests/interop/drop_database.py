"""drop_database.py URI: drop the URI's database."""

import sys

import pymongo

client = pymongo.MongoClient(sys.argv[1])
client.drop_database(client.get_default_database())
