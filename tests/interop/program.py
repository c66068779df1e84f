"""Calls of the program `spillway`."""

import json
import os
import subprocess

from bson import json_util


def spillway(*arguments, stdin=None, code=0):
    """Run the program, check that its exit code is `code`, and return its standard output."""
    run = subprocess.run([os.environ["SPILLWAY"], *arguments], input=stdin, text=True,
                         capture_output=True, check=False)
    if run.returncode != code:
        raise AssertionError(f"spillway {' '.join(arguments)} ended with {run.returncode}, "
                             f"not {code}: {run.stderr}")
    return run.stdout


def read(uri, name, owner, *options):
    """`spillway read --json`: the sequence numbers, and the elements, in the order printed."""
    lines = spillway("read", uri, name, owner, "--json", *options).splitlines()
    rows = [json_util.loads(line) for line in lines]
    rows = [row for row in rows if "seq" in row]
    return [row["seq"] for row in rows], [row["element"] for row in rows]


def count(uri, name, owner):
    """`spillway count`."""
    return json.loads(spillway("count", uri, name, owner))["count"]


def findings(uri, name):
    """The number of findings of `spillway verify`."""
    return json.loads(spillway("verify", uri, name).splitlines()[-1])["findings"]
