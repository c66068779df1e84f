#!/usr/bin/env bash
# Copies from a folder to a server and back.
# shellcheck disable=SC1091 # the test on an embedded store is not followed
export SPILLWAY_TEST_STORE=server
source "$(dirname "$0")/test_copy.sh"
