"""test_guide.py FILE: run the lines of a guide that begin with `$`, and compare what they print.

A command is an indented line "$ COMMAND". The indented lines below it are its standard output. In
them "..." matches any text, and alone on a line any number of lines. Each command must end with exit
code 0. All commands run in one shell, in the current folder. A command that waits for ever is ended, with
what it started, after SECONDS.
"""

import os
import re
import signal
import subprocess
import sys

MARK = "==== end of command"
SECONDS = 600


def commands(text):
    """(line number, command, lines expected), in order."""
    found, indent = [], None
    for number, line in enumerate(text.splitlines(), 1):
        command = re.match(r"( {4,})\$ (.*)", line)
        if command:
            indent = command[1]
            found.append((number, command[2], []))
        elif indent and line.startswith(indent):
            found[-1][2].append(line[len(indent):])
        else:
            indent = None
    return found


def matches(printed, expected):
    pattern = "".join(
        "(?:.*\n)*" if line.strip() == "..." else re.escape(line).replace(re.escape("..."), ".*") + "\n"
        for line in expected)
    return re.fullmatch(pattern, printed) is not None


def run(script):
    """The standard output of the script, as far as it comes in time."""
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as shell:
        try:
            return shell.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            return shell.communicate()[0]


def main():
    with open(sys.argv[1], encoding="utf-8") as guide:
        steps = commands(guide.read())
    script = "\n".join(f"{command}\necho '{MARK}' $?" for _, command, _ in steps)
    # Output, exit code, output, exit code, ..., and then the empty text after the last mark.
    parts = re.split(rf"{MARK} (\d+)\n", run(script))[:-1]
    failures = 0
    if len(parts) < 2 * len(steps):
        number, command, _ = steps[len(parts) // 2]
        print(f"line {number}: {command}\nhas not ended", file=sys.stderr)
        failures += 1
    for (number, command, expected), output, code in zip(steps, parts[::2], parts[1::2]):
        if not matches(output, expected) or code != "0":
            failures += 1
            print(f"line {number}: {command}\nends with {code} and prints\n{output}",
                  file=sys.stderr)
    print(f"{len(steps)} commands, {failures} with other output or exit code")
    sys.exit(1 if failures or not steps else 0)


main()
