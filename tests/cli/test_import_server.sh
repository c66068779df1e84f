#!/usr/bin/env bash
# Imports: every format, resuming, repeating, and all kinds of bad input, on a server.
# shellcheck disable=SC1091 # the test on an embedded store is not followed
export SPILLWAY_TEST_STORE=server
source "$(dirname "$0")/test_import.sh"
