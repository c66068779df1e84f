"""test_recipes.py URI COMMAND...: compare a recipe with the program; COMMAND runs the recipe."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymongo

from program import count, findings, read, spillway

URI, COMMAND = sys.argv[1], sys.argv[2:]
THRESHOLD, PAGE = 6, 4
NUMBER, OBJECT_ID = "7", '{"$oid": "5f1d7a3e9d1b2c0001a2b3c4"}'  # owners of other types
PATHS = ("--array", "stats.events", "--count-field", "stats.count", "--overflow-field", "stats.more",
         "--pages-field", "meta.pages")
RETAINED = 7
RECIPES = Path(__file__).parent / "../../examples/recipes"
ROWS = [{"type": "post", "text": "a"}, "plain", 7, [1, [2]], None, {"nested": {"deep": True}}, 1.5]


def database():
    return pymongo.MongoClient(URI).get_default_database()


def run_recipe(*arguments, program=None):
    """Run the recipe. `program` replaces the program `spillway`."""
    environment = {**os.environ, "SPILLWAY_URI": URI}
    if program:
        environment["SPILLWAY"] = program
    return subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, text=True,
                          check=False)


def recipe(*arguments, program=None):
    """Run the recipe and return its lines."""
    run = run_recipe(*arguments, program=program)
    if run.returncode != 0:
        raise AssertionError(f"the recipe's {' '.join(arguments)} failed: {run.stderr}")
    return run.stdout.splitlines()


def expect_refusal(text, *arguments):
    """Check that the recipe fails with the text in its message, and prints no result."""
    run = run_recipe(*arguments, program="false")
    what = f"{' '.join(arguments)} ended with {run.returncode}: {run.stdout}{run.stderr}"
    if run.returncode == 0 or run.stdout.strip() or text not in run.stderr:
        raise AssertionError(f"{what}; it should fail with: {text}")


def expect(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} is not {wanted!r}")


def program_page(name, owner, limit, before):
    options = ["--limit", str(limit)] + (["--before", str(before)] if before is not None else [])
    lines = spillway("read", URI, name, owner, "--json", *options).splitlines()
    return [row for row in map(json.loads, lines) if "seq" in row]


def recipe_page(name, owner, limit, before):
    more = [str(before)] if before is not None else []
    return [json.loads(line) for line in recipe(name, "read", owner, str(limit), *more)]


def check_pages(name, owner, total):
    """Check that the recipe and the program read the same pages, from the newest to the oldest."""
    before, seen = None, 0
    while True:
        page = recipe_page(name, owner, 9, before)
        expect(page, program_page(name, owner, 9, before), f"{name} {owner} before {before}")
        if not page:
            break
        before, seen = page[-1]["seq"], seen + len(page)
    expect(seen, total, f"elements of {owner} in {name}")
    expect(recipe(name, "count", owner), [str(total)], f"count of {owner} in {name}")


def check_reading(name):
    """Check reads of elements of all types, after removals in head and pages, and after a trim."""
    lines = "\n".join(json.dumps(row) for row in ROWS * 3)
    spillway("append", URI, name, "alice", "-", stdin=lines + "\n")
    for seq in (0, 9, 12, 13, 20):
        spillway("remove", URI, name, "alice", str(seq))
    check_pages(name, "alice", 16)
    spillway("trim", URI, name, "alice", "--keep", "10")
    check_pages(name, "alice", 10)
    expect(recipe(name, "read", "nobody"), [], "a missing owner")
    expect(recipe(name, "count", "nobody"), ["0"], "the count of a missing owner")


def check_appending(name):
    """Append with recipe and program in turn. If the recipe is refused, it hands over."""
    wanted = []
    for turn in range(4):
        own = [turn * 10 + number for number in range(4)]
        numbers = recipe(name, "append", NUMBER, *map(str, own))
        wanted += own
        expect(numbers, [str(len(wanted) - 4 + number) for number in range(4)], "numbers given")
        spillway("append", URI, name, NUMBER, '"between"')
        wanted.append("between")
    numbers, elements = read(URI, name, NUMBER, "--oldest", "--limit", "1000")
    expect(numbers, list(range(len(wanted))), f"numbers in {name}")
    expect(elements, wanted, f"elements in {name}")
    expect(count(URI, name, NUMBER), len(wanted), f"count in {name}")
    check_pages(name, NUMBER, len(wanted))


def check_hand_over(name):
    """Check that a recipe needs no program if there is room, and changes nothing if it has none."""
    spillway("append", URI, name, OBJECT_ID, "0")
    expect(recipe(name, "append", OBJECT_ID, "1", program="false"), ["1"], "without the program")
    run = run_recipe(name, "append", "nobody", "1", program="false")
    expect(run.returncode != 0, True, "a recipe that cannot hand over fails")
    expect(count(URI, name, OBJECT_ID), 2, "count of an object id")


def define(name, preset, *options):
    spillway("define", URI, name, "--preset", preset, "--threshold", str(THRESHOLD), "--page",
             str(PAGE), "--collection", name, "--page-collection", f"{name}Pages", *options)


def check(name, preset, *options):
    define(name, preset, *options)
    check_reading(name)
    check_appending(name)
    check_hand_over(name)
    expect(findings(URI, name), 0, f"findings of verify in {name}")


def check_retention(name):
    """Check that the program deletes what is not retained, if only the recipe appends."""
    define(name, "feed-recent", "--retain-elements", str(RETAINED))
    recipe(name, "append", "alice", *map(str, range(40)))
    total = count(URI, name, "alice")
    slots = THRESHOLD + PAGE + PAGE // 8 + 1  # the program spills, and deletes, at this length
    expect(RETAINED <= total <= slots, True, f"{total} elements of {name} are between the bounds")
    check_pages(name, "alice", total)


def check_in_the_way(name):
    """Check that the recipe reports values that stand where a head's array should be."""
    heads = database()[name]
    define(name, "feed-recent", *PATHS)
    spillway("append", URI, name, "alice", *map(str, range(20)))
    values = ([1], [{"events": [1, 2]}], 5, None, {"events": 5}, {"events": None})
    commands = (["read", "alice"], ["count", "alice"], ["append", "alice", "1"]) * 2
    for value, command in zip(values, commands):
        heads.update_one({"_id": "alice"}, {"$set": {"stats": value}})
        before = heads.find_one("alice")
        expect_refusal("'stats.events'", name, *command)
        expect(heads.find_one("alice"), before, f"the head after {command} beside {value}")
    heads.insert_one({"_id": "bob", "stats": {"events": [1, 2]}})
    expect_refusal("'stats.events' is unmanaged", name, "read", "bob")


def check_replaced(name, preset):
    """Check numbers of appends behind an array that another program has replaced after removals.

    The removed number then lies behind the array's end: the recipe hands over, and the program removes
    the number. Removed numbers of other arrays, also of the last element, are no reason to hand over.
    """
    heads = database()[name]
    define(name, preset, *PATHS)
    changes = {"alice": {"$set": {"stats": {"fresh": 1}}}, "bob": {"$set": {"stats.events": ["new"]}},
               "carol": {"$unset": {"stats.events": 1}}}
    for owner, change in changes.items():
        spillway("append", URI, name, owner, *map(str, range(5)))
        spillway("remove", URI, name, owner, "3")
        heads.update_one({"_id": owner}, change)
        before = heads.find_one(owner)
        run = run_recipe(name, "append", owner, "10", program="false")
        expect((run.returncode != 0, run.stdout), (True, ""), f"{owner}: handed over")
        expect(heads.find_one(owner), before, f"{owner}'s head after a refused append")
        elements = [*(["new"] if owner == "bob" else []), 10, 11]
        numbers = list(range(len(elements)))
        expect(recipe(name, "append", owner, "10", "11"), [str(number) for number in numbers[-2:]],
               f"{owner}: the numbers given")
        expect(read(URI, name, owner, "--oldest"), (numbers, elements), f"{owner}'s elements")
        expect(recipe(name, "count", owner), [str(len(elements))], f"{owner}'s count")
    for owner, removed in {"dave": "1", "erin": "4"}.items():
        spillway("append", URI, name, owner, *map(str, range(5)))
        spillway("remove", URI, name, owner, removed)
        expect(recipe(name, "append", owner, "5", program="false"), ["5"], f"{owner}: the number given")


def check_refusals():
    """Check that the recipe refuses definitions with rules that it does not keep."""
    define("unique", "feed-recent", "--id-field", ".", "--unique")
    define("reversed", "feed-recent", "--order", "newest-first")
    define("reference", "reviews-separate")
    spillway("append", URI, "unique", "alice", "1")
    refused = {"unique": "field 'unique'", "reversed": "field 'order'", "reference": "layout 'reference'",
               "later": "field 'rule'", "laterBounds": "field 'bounds.rule'", "laterKeep": "keep 'new'"}
    # The program refuses unknown fields, too, so store them when it is not needed any more.
    definitions = database()["spillway.definitions"]
    entry = definitions.find_one("recent")["entry"]
    definitions.insert_many([
        {"_id": "later", "entry": {**entry, "rule": True}},
        {"_id": "laterBounds", "entry": {**entry, "bounds": {**entry["bounds"], "rule": 1}}},
        {"_id": "laterKeep", "entry": {**entry, "keep": "new"}}])
    with ThreadPoolExecutor() as pool:
        checks = [pool.submit(expect_refusal, text, name, "append", "alice", "1")
                  for name, text in refused.items()]
        for done in checks:
            done.result()
    expect(database()["unique"].find_one("alice")["activities"], [1], "the elements of the set")


def check_lists():
    """Check that all recipes, also those that do not run here, know the same fields."""
    lists = {}
    for path in sorted(RECIPES.glob("*/[fF]eed.*")):
        found = re.search(r"name collection array.*?bounds\.pageBytesMax", path.read_text(), re.S)
        if path.suffix != ".csproj":
            lists[path.name] = re.findall(r"\w[\w.]*", found[0]) if found else []
    expect(len(lists), 7, "the number of recipes")
    for name, fields in lists.items():
        expect(fields, lists["feed.py"], f"the fields that {name} knows")


def main():
    """Check the arrays in parallel, because a recipe mostly waits for its driver to connect."""
    check_lists()
    with ThreadPoolExecutor() as pool:
        arrays = [("recent", "feed-recent"), ("paths", "feed-recent", *PATHS),
                  ("sales", "sales", "--array", "stats.customers")]
        if os.environ.get("SPILLWAY_LONG"):
            arrays += [("feed", "feed"), ("oldPaths", "feed", *PATHS)]
        checks = [pool.submit(check, *array) for array in arrays]
        checks += [pool.submit(check_retention, "retained"), pool.submit(check_in_the_way, "blocked"),
                   pool.submit(check_replaced, "replaced", "feed-recent"),
                   pool.submit(check_replaced, "oldReplaced", "feed")]
        for done in checks:
            done.result()
    check_refusals()


main()
