"""The command `spillway`: replace this process by the program in the package's folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "spillway"
    try:
        os.execv(program, ["spillway", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"spillway: {program} cannot be started: {error.strerror}: install it again")
