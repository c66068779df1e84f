"""test_migrate_full_sizes.py URI: documents of nearly the server's limit with few, large elements.

What a migration can adopt it adopts, whatever the number and the sizes of the elements. What it
cannot, the dry run names with the reason, and the migration names the same and changes nothing.
"""

import json
import os
import re
import subprocess
import sys

import bson
import pymongo
from program import findings, spillway
from test_migrate import arrays, make_plan

URI = sys.argv[1]
LIMIT = 16 * 1024 * 1024
OWN = 199  # bytes of bookkeeping of an array `events` with a count

# The owner: the sizes of its elements, one of which (None) fills the document up to `slack` bytes.
ADOPTED = {
    "one": ([None], OWN),
    "two, the newest huge": ([300, None], 0),
    "18": ([LIMIT // 18 - 200] * 17 + [None], 13),
}
REFUSED = {
    "one, a byte too full": ([None], OWN - 1, "only the newest element"),
    "an older one fits no page": ([None, 10], 0, "no page can hold"),
}


def make(users, owner, sizes, slack):
    """A document with so many bytes to the limit."""
    document = {"_id": owner, "events": [{"k": k, "text": "x" * (size or 0)}
                                         for k, size in enumerate(sizes)]}
    filler = document["events"][sizes.index(None)]
    filler["text"] = "y" * (LIMIT - slack - len(bson.encode(document)))
    assert len(bson.encode(document)) == LIMIT - slack
    users.insert_one(document)
    return document


def named(text):
    """The owners that messages name, with what is said of them."""
    return dict(re.findall(r'owner "([^"]*)" of \'events\': (.*)', text))


def run(code, *options):
    """`spillway migrate`: its first result, and whom its messages name."""
    done = subprocess.run([os.environ["SPILLWAY"], "migrate", URI, "plan.json", "--quiet",
                           *options], capture_output=True, text=True, check=False)
    assert done.returncode == code, (done.returncode, done.stderr)
    return json.loads(done.stdout.splitlines()[0]), named(done.stderr)


def main():
    """Fill, ask, migrate, compare."""
    users = pymongo.MongoClient(URI).get_default_database().users
    make_plan()
    before = {owner: make(users, owner, *what[:2]) for owner, what in (ADOPTED | REFUSED).items()}

    survey, predicted = run(0, "--json")
    assert survey["owners"] == len(before) and survey["toFail"] == len(REFUSED), survey
    assert predicted.keys() == REFUSED.keys(), predicted
    for owner, (_, _, reason) in REFUSED.items():
        assert reason in predicted[owner], predicted[owner]

    done, failed = run(1, "--execute")
    assert done["failed"] == len(REFUSED) and failed == predicted, (done, failed)
    for owner in REFUSED:
        assert users.find_one({"_id": owner}) == before[owner], owner
    found = arrays()
    assert found.keys() == ADOPTED.keys(), found.keys()
    for owner in ADOPTED:
        assert found[owner] == before[owner]["events"], owner
    assert findings(URI, "events") == 0
    print(f"{len(ADOPTED)} adopted, {len(REFUSED)} refused as predicted")


if __name__ == "__main__":
    main()
