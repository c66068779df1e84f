#!/usr/bin/env bash
# Imports that are killed and restarted, on a server.
# shellcheck disable=SC1091 # the test on an embedded store is not followed
export SPILLWAY_TEST_STORE=server
source "$(dirname "$0")/test_import_killed.sh"
