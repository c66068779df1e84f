"""A terminal for tests: run a program on a pseudo-terminal, and keep the screen as a person sees it.

terminal.py COLUMNS check PROGRAM ARGUMENT...   run it slowly, and check its progress lines
terminal.py COLUMNS follow PROGRAM ARGUMENT...  the same once and at full speed, for work that takes seconds.
                                                Its pace may vary, so the time left is not judged
terminal.py COLUMNS show PROGRAM ARGUMENT...    run it, and print what it printed; a line that is too
                                                long stays one line
terminal.py COLUMNS lines PROGRAM ARGUMENT...   run it, and print each text that its progress line had
terminal.py COLUMNS stop PROGRAM ARGUMENT...    press Ctrl-C after the second progress line, and print
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

# The program runs for this part of the time, so that little work takes long enough to be shown. If it
# was too fast for three lines, the next try holds it longer.
RUN_S, HOLDS_S = 0.001, (0.06, 0.2, 0.6)
MOST_S = 300


def numbers_left(line):
    """The seconds that a progress line says are left, or None."""
    found = re.search(r"([0-9.]+) (s|min|h)(?: ([0-9]+) min)? left$", line.rstrip())
    if not found:
        return None
    seconds = float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2]]
    return seconds + 60 * int(found[3] or 0)


class Screen:
    """The line of the cursor, and the lines above it. `states`: each text that the line had."""

    def __init__(self, columns):
        self.columns, self.lines, self.line, self.at = columns, [], [], 0
        self.errors, self.states = [], []

    def put(self, text):
        for sign in re.findall(r"\x1b\[[0-9;]*m|.", text, re.DOTALL):
            if sign == "\r":
                self.at = 0
            elif sign == "\n":
                self.lines.append("".join(self.line).rstrip())
                self.line, self.at = [], 0
            elif sign[0] == "\x1b":  # a colour has no width
                self.line[self.at - 1:self.at] = [self.line[self.at - 1] + sign if self.at > 0 else sign]
            else:
                if self.at >= self.columns:
                    self.lines.append("".join(self.line).rstrip())
                    self.line, self.at = [], 0
                self.line[self.at:self.at + 1] = [sign]
                self.at += 1
        state = "".join(self.line).rstrip()
        if state and (not self.states or self.states[-1] != state):
            self.states.append(state)


def run(columns, command, slow=False, stop=False, whole=False, hold_s=HOLDS_S[0]):
    """Run the command. Returns its exit code and the screen. With `whole`, the screen wraps no line."""
    child, master = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ["TERM"] = os.environ.get("SPILLWAY_TERM", "xterm")
        os.execvp(command[0], command)
    screen, ends, held = Screen(1 << 30 if whole else columns), time.monotonic() + MOST_S, False
    while time.monotonic() < ends:
        readable, _, _ = select.select([master], [], [], hold_s if held else RUN_S)
        if readable:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            screen.put(piece.decode("utf-8", "replace"))
            if stop and len(screen.states) >= 2:
                os.kill(child, signal.SIGCONT)
                os.kill(child, signal.SIGINT)
                stop = slow = held = False
            continue
        if slow:
            held = not held
            os.kill(child, signal.SIGSTOP if held else signal.SIGCONT)
    else:
        os.kill(child, signal.SIGKILL)
        screen.errors.append("it did not end")
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), screen


def check(columns, command, slow=True):
    for hold_s in HOLDS_S if slow else HOLDS_S[:1]:
        status, screen = run(columns, command, slow=slow, hold_s=hold_s)
        if sum(numbers_left(line) is not None for line in screen.states) >= 3 or status != 0:
            break
    problems, before, estimates, totals = list(screen.errors), None, 0, 0
    part_before = 0
    for line in screen.states:
        left = numbers_left(line)
        totals += "%" in line
        if left is None:
            continue
        estimates += 1
        part = float(re.search(r"([0-9]+) %", line)[1])
        if part < part_before:  # the next definition
            before = None
        part_before = part
        if slow and before is not None and abs(left - before) > before / 2 + 0.051:
            problems.append(f"the time left jumps from {before} s to {left} s")
        before = left
        if re.search(r"left.*left|%.*%", line):
            problems.append("a line has parts of the line before it: " + line)
    if status != 0:
        problems.append(f"exit code {status}")
    if slow and estimates < 3:
        problems.append(f"only {estimates} of {len(screen.states)} lines say what is left")
    if totals < 3:
        problems.append("there is no percentage")
    # The progress line is erased at the end, and leaves no trace between the other lines.
    problems += ["a progress line stays: " + line for line in screen.lines
                 if re.search(r"[0-9] %, .* left", line)]
    for problem in problems:
        print(problem)
    print(f"{len(screen.states)} lines at {columns} columns, for example: "
          + (screen.states[len(screen.states) // 2] if screen.states else "none"))
    return 1 if problems else 0


def main():
    columns, what, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if what == "check":
        return check(columns, command)
    if what == "follow":
        return check(columns, command, slow=False)
    status, screen = run(columns, command, slow=what == "stop", stop=what == "stop",
                         whole=what == "show")
    if what == "lines":
        print("\n".join(screen.states))
        return status if not screen.errors else 99
    print("\n".join(screen.lines + (["".join(screen.line).rstrip()] if screen.line else [])))
    return status if not screen.errors else 99


if __name__ == "__main__":
    sys.exit(main())
