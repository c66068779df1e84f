"""Scans in the process, and the program of the package."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import spillway
from store_case import SERVER, StoreCase, server_uri, small_feed

SCANNER = """
import sys, spillway
print("begun", flush=True)
try: spillway.scan(sys.argv[1])
except KeyboardInterrupt: sys.exit(7)
"""


class ScanTest(StoreCase):
    def test_finds_the_array(self) -> None:
        path = os.path.join(self.folder, "users.ndjson")
        with open(path, "w", encoding="utf-8") as file:
            for user in range(20):
                print(json.dumps({"_id": user, "events": list(range(user * 10))}), file=file)
        result = spillway.scan(path, max_elements=100)
        findings = [(finding["finding"], finding["path"]) for finding in result["findings"]]
        self.assertIn(("unbounded-array", "events"), findings)
        self.assertEqual(result["documents"], 20)
        self.assertEqual(result["source"], path)
        self.assertEqual(spillway.scan(path, max_elements=1000)["findings"], [])

    def test_no_such_source(self) -> None:
        with self.assertRaisesRegex(spillway.NotFoundError, "no-such"):
            spillway.scan(os.path.join(self.folder, "no-such"))

    def test_damaged_input_is_listed(self) -> None:
        path = os.path.join(self.folder, "bad.ndjson")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"_id": 1}\n{"_id": \n{"_id": 3}\n')
        result = spillway.scan(path)
        self.assertEqual(result["documents"], 2)
        self.assertEqual(result["problemCount"], 1)

    def test_interrupt_ends_a_scan(self) -> None:
        pipe = os.path.join(self.folder, "never.ndjson")
        with open(pipe, "w", encoding="utf-8") as file:
            line = json.dumps({"a": list(range(1000))}) + "\n"
            for _ in range(20000):
                file.write(line)
        scanner = subprocess.Popen(
            [sys.executable, "-c", SCANNER, pipe], stdout=subprocess.PIPE, text=True)
        assert scanner.stdout is not None
        scanner.stdout.readline()
        time.sleep(0.05)
        scanner.send_signal(signal.SIGINT)
        self.assertIn(scanner.wait(timeout=60), (0, 7))
        scanner.stdout.close()

    @unittest.skipUnless(SERVER, "SPILLWAY_TEST_URI names no server")
    def test_server(self) -> None:
        uri = server_uri()
        with spillway.open(uri) as store:
            store.define(small_feed())
            store.array("feed").extend("ada", list(range(5)))
        self.assertEqual(
            spillway.scan(uri, collections=["users"])["collections"][0]["documents"], 1)


class ProgramTest(StoreCase):
    def run_program(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["spillway", *words], capture_output=True, text=True)

    def test_program_is_the_package(self) -> None:
        self.assertEqual(self.run_program("--version").stdout.split()[1], spillway.__version__)
        self.feed.append("ada", {"n": 1})
        self.store.close()
        self.assertIn('"n"', self.run_program("read", self.uri(), "feed", "ada").stdout)

    def test_gateway_starts(self) -> None:
        self.assertIn("--listen", self.run_program("serve", "--help").stdout)
        checked = self.run_program("serve", "mongodb://127.0.0.1:1/x", "--check")
        self.assertNotEqual(checked.returncode, 0)
        self.assertIn("127.0.0.1:1", checked.stdout + checked.stderr)
