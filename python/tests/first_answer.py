"""The example of docs/how-to/python.md."""

import tempfile

import spillway

with tempfile.TemporaryDirectory() as folder:
    with spillway.open(folder + "/feeds.spill") as store:
        store.define(spillway.Definition.preset("feed-recent", "feed"))
        feed = store.array("feed")
        feed.append("ada", {"type": "joined", "group": "engines"})
        for element in feed.read("ada"):
            print(element.seq, element.value)
