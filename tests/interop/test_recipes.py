"""test_recipes.py URI COMMAND...: compare a recipe with the program; COMMAND runs the recipe."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from program import count, findings, read, spillway

URI, COMMAND = sys.argv[1], sys.argv[2:]
THRESHOLD, PAGE = 6, 4
NUMBER, OBJECT_ID = "7", '{"$oid": "5f1d7a3e9d1b2c0001a2b3c4"}'  # owners of other types
ROWS = [{"type": "post", "text": "a"}, "plain", 7, [1, [2]], None, {"nested": {"deep": True}}, 1.5]


def recipe(*arguments, program=None):
    """Run the recipe and return its lines. `program` replaces the program `spillway`."""
    environment = {**os.environ, "SPILLWAY_URI": URI}
    if program:
        environment["SPILLWAY"] = program
    run = subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        raise AssertionError(f"the recipe's {' '.join(arguments)} failed: {run.stderr}")
    return run.stdout.splitlines()


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
    environment = {**os.environ, "SPILLWAY_URI": URI, "SPILLWAY": "false"}
    run = subprocess.run([*COMMAND, name, "append", "nobody", "1"], env=environment,
                         capture_output=True, check=False)
    expect(run.returncode != 0, True, "a recipe that cannot hand over fails")
    expect(count(URI, name, OBJECT_ID), 2, "count of an object id")


def check(name, preset):
    spillway("define", URI, name, "--preset", preset, "--threshold", str(THRESHOLD), "--page",
             str(PAGE), "--collection", name, "--page-collection", f"{name}Pages")
    check_reading(name)
    check_appending(name)
    check_hand_over(name)
    expect(findings(URI, name), 0, f"findings of verify in {name}")


def main():
    """Check the arrays in parallel, because a recipe mostly waits for its driver to connect."""
    with ThreadPoolExecutor() as pool:
        arrays = [("recent", "feed-recent"), ("sales", "sales")]
        if os.environ.get("SPILLWAY_LONG"):
            arrays.append(("feed", "feed"))
        for done in [pool.submit(check, name, preset) for name, preset in arrays]:
            done.result()


main()
