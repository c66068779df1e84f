"""run_pymongo_suite.py FOLDER HOST PORT MODULE...: run modules of pymongo's own tests against a server.

FOLDER is pymongo's source distribution. Prints a line for each test, "passed NAME", "failed NAME" or
"skipped NAME". A failure is no failure of this program: the caller compares two runs.
"""

import os
import sys
import unittest


class Lines(unittest.TestResult):
    """Prints each result when its test ends."""

    def startTest(self, test):
        super().startTest(test)
        self.outcome = "passed"

    def stopTest(self, test):
        print(self.outcome, test.id(), flush=True)
        super().stopTest(test)

    def addError(self, test, err):
        self.outcome = "failed"
        if os.environ.get("SUITE_ERRORS"):
            super().addError(test, err)
            print(self.errors[-1][1], file=sys.stderr)

    addFailure = addError
    addUnexpectedSuccess = unittest.TestResult.addUnexpectedSuccess

    def addSkip(self, test, reason):
        self.outcome = "skipped"

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.outcome = "failed"


def main():
    folder, host, port, *modules = sys.argv[1:]
    os.environ["DB_IP"] = host
    os.environ["DB_PORT"] = port
    os.chdir(folder)
    sys.path.insert(0, folder)
    import test  # pymongo's

    test.setup()
    if not test.client_context.connected:
        sys.exit(f"no server at {host}:{port}: {test.client_context.connection_attempts}")
    try:
        names = [f"test.{module}" for module in modules]
        unittest.defaultTestLoader.loadTestsFromNames(names).run(Lines())
    finally:
        test.teardown()


if __name__ == "__main__":
    main()
