"""Views of a collection with a definition, made on a scripted server itself: reads of them are refused."""

import os
import signal
import subprocess

from gateway_lib import DEFINITION, Gateway, Server, body_of, run, wait_until

SOURCES = {"newest": ("posts", []), "nested": ("newest", []), "free": ("users", []),
           "joined": ("users", [{"$lookup": {"from": "posts", "as": "x", "pipeline": []}}])}
VIEWS = [{"name": name, "type": "view", "options": {"viewOn": on, "pipeline": pipeline}}
         for name, (on, pipeline) in SOURCES.items()]


def start(views):
    server = Server(definitions=[DEFINITION], recorded=("d",), views=views)
    return server, Gateway(f"mongodb://127.0.0.1:{server.port}/d")


def refuses(gateway, command):
    answer = gateway.ask(command | {"$db": "d"})
    return answer.get("code") == 115 and answer["spillway"]


def reads_of_views_are_refused():
    server, gateway = start(VIEWS)
    for view in ("newest", "nested", "joined"):
        for command in ({"find": view}, {"count": view}, {"distinct": view, "key": "f"},
                        {"aggregate": view, "pipeline": [], "cursor": {}},
                        {"mapReduce": view, "out": "o"},
                        {"aggregate": "users", "pipeline": [{"$unionWith": view}], "cursor": {}},
                        {"create": "another", "viewOn": view, "pipeline": []}):
            refused = refuses(gateway, command)
            assert refused and refused["collection"] in (view, "another"), (command, refused)
            if next(iter(command)) != "create":
                assert "read 'posts' itself" in refused["reason"], refused
    for collection in ("posts", "newest"):
        assert refuses(gateway, {"collMod": "free", "viewOn": collection, "pipeline": []})
    assert server.received == [], [body_of(data) for data in server.received]
    for command in ({"find": "free"}, {"drop": "newest"}, {"collMod": "newest", "viewOn": "users"}):
        assert gateway.ask(command | {"$db": "d"})["ok"] == 1, command
    assert len(server.received) == 3
    gateway.stop()


def views_are_read_again():
    """A view that is made, or dropped, while the gateway runs."""
    server, gateway = start([])
    assert gateway.ask({"find": "newest", "$db": "d"})["ok"] == 1
    server.views = VIEWS
    gateway.send_signal(signal.SIGHUP)
    wait_until("the view is known", lambda: refuses(gateway, {"find": "newest"}))
    server.views = []
    gateway.send_signal(signal.SIGHUP)
    wait_until("the view is gone", lambda: not refuses(gateway, {"find": "newest"}))
    gateway.stop()


def a_check_names_them():
    server = Server(definitions=[DEFINITION], recorded=(), views=VIEWS)
    made = subprocess.run([os.environ["SPILLWAY"], "serve", f"mongodb://127.0.0.1:{server.port}/d", "--check"],
                          check=True, capture_output=True, text=True)
    for view in ("newest", "nested", "joined"):
        assert f"{view}: a view of posts: reads are refused" in made.stdout, made
    assert "free" not in made.stdout, made


run([reads_of_views_are_refused, views_are_read_again, a_check_names_them])
