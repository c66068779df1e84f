"""test_recipe_race.py URI: many clients, recipes and programs, append to one owner.

Each element must be appended exactly once. A client treats every second answer as lost: it repeats
the append with the same operation id, which must return the same number.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from program import findings, read, spillway

sys.path.append(str(Path(__file__).parent / "../../examples/recipes/python"))
from feed import Feed  # noqa: E402 (the recipe is in another folder)

URI = sys.argv[1]
RECIPES, PROGRAMS, EACH = 4, 2, 25


def by_recipe(name, client):
    feed = Feed(URI, name)
    given = {}
    for turn in range(EACH):
        element = f"recipe {client}.{turn}"
        operation = feed.operation("hot")
        given[feed.append("hot", element, operation)] = element
        if turn % 2:
            again = feed.append("hot", element, operation)
            assert given.get(again) == element, f"a retry gave {again} in {name}"
    return given


def by_program(name, client):
    given = {}
    for turn in range(EACH):
        element = f"program {client}.{turn}"
        given[int(spillway("append", URI, name, "hot", f'"{element}"'))] = element
    return given


def check(name, preset):
    spillway("define", URI, name, "--preset", preset, "--threshold", "6", "--page", "5",
             "--collection", name, "--page-collection", f"{name}Pages")
    with ThreadPoolExecutor(RECIPES + PROGRAMS) as pool:
        clients = [pool.submit(by_recipe, name, client) for client in range(RECIPES)]
        clients += [pool.submit(by_program, name, client) for client in range(PROGRAMS)]
        given = {}
        for client in clients:
            for seq, element in client.result().items():
                assert seq not in given, f"number {seq} was assigned twice in {name}"
                given[seq] = element
    total = (RECIPES + PROGRAMS) * EACH
    numbers, elements = read(URI, name, "hot", "--oldest", "--limit", str(2 * total))
    assert numbers == list(range(total)), f"the numbers in {name} are {numbers}"
    assert dict(zip(numbers, elements)) == given, f"elements in {name} are not as acknowledged"
    assert Feed(URI, name).count("hot") == total
    assert findings(URI, name) == 0, f"verify has findings in {name}"


class Overtaken(Feed):
    """A slow client: other clients change the array before it reads a page."""

    def __init__(self, name, meanwhile):
        super().__init__(URI, name)
        self.meanwhile = meanwhile

    def page(self, *arguments):
        while self.meanwhile:
            spillway(self.meanwhile.pop(0), URI, *self.meanwhile.pop(0))
        return super().page(*arguments)


def check_count(name):
    """Check that a count is one that the array had, whatever happens between its reads."""
    total = Feed(URI, name).count("hot")
    for meanwhile, difference in (
            (["remove", (name, "hot", "3"), "append", (name, "hot", "1")], 0),
            (["trim", (name, "hot", "--below", "8"), "append", (name, "hot", "1")], -6),
            (["append", (name, "hot", *map(str, range(12)))], 12)):
        steps = list(meanwhile)
        feed = Overtaken(name, steps)
        total += difference
        counted = feed.count("hot")
        assert not steps, f"{name}: a count read no page"
        assert counted == total, f"{name}: {counted} elements, not {total}, after {meanwhile}"


def main():
    os.environ["SPILLWAY_URI"] = URI  # for appends that the recipe hands over to the program
    for name, preset in (("recent", "feed-recent"), ("feed", "feed"), ("sales", "sales")):
        check(name, preset)
        if preset != "feed-recent":  # with keep newest a count reads the head alone
            check_count(name)


main()
