"""test_migrate_full_sizes.py URI: documents near the server's limit with few, large elements.

A migration adopts every array that it can, whatever the number and the sizes of the elements. The
dry run names the others with the reason. The migration names the same arrays and does not change them.
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

# owner: (sizes of its elements, slack). The element None fills the document to the limit less `slack`.
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
    """Insert a document of the limit less `slack` bytes."""
    document = {"_id": owner, "events": [{"k": k, "text": "x" * (size or 0)}
                                         for k, size in enumerate(sizes)]}
    filler = document["events"][sizes.index(None)]
    filler["text"] = "y" * (LIMIT - slack - len(bson.encode(document)))
    assert len(bson.encode(document)) == LIMIT - slack
    users.insert_one(document)
    return document


def named(text):
    """The owners that messages name, with the reasons: {owner: reason}."""
    return dict(re.findall(r'owner "([^"]*)" of \'events\': (.*)', text))


def run(code, *options):
    """Run `spillway migrate`. Returns its first result, and the owners that its messages name."""
    done = subprocess.run([os.environ["SPILLWAY"], "migrate", URI, "plan.json", "--quiet",
                           *options], capture_output=True, text=True, check=False)
    assert done.returncode == code, (done.returncode, done.stderr)
    return json.loads(done.stdout.splitlines()[0]), named(done.stderr)


def main():
    """Fill, run a dry run, migrate, compare."""
    users = pymongo.MongoClient(URI).get_default_database().users
    make_plan()
    before = {owner: make(users, owner, *what[:2]) for owner, what in (ADOPTED | REFUSED).items()}

    survey, predicted = run(0, "--json")
    assert survey["owners"] == len(before) and survey["toSkip"] == len(REFUSED), survey
    assert predicted.keys() == REFUSED.keys(), predicted
    for owner, (_, _, reason) in REFUSED.items():
        assert reason in predicted[owner], predicted[owner]

    done, failed = run(1, "--execute")
    assert done["failed"] == len(REFUSED) and failed == predicted, (done, failed)
    assert survey["full"] == done["full"] > 0, (survey, done)  # both without the skipped ones
    for owner in REFUSED:
        assert users.find_one({"_id": owner}) == before[owner], owner
    managed = {document["_id"] for document in users.find({"spill": {"$exists": True}}, {"_id": 1})}
    assert managed == ADOPTED.keys(), managed
    found = arrays()  # also those that are not managed
    assert found.keys() == before.keys(), found.keys()
    for owner, document in before.items():
        assert found[owner] == document["events"], owner
    assert findings(URI, "events") == 0
    print(f"{len(ADOPTED)} adopted, {len(REFUSED)} refused as predicted")


if __name__ == "__main__":
    main()
