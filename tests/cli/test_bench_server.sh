#!/usr/bin/env bash
# bench, on a server.
# shellcheck disable=SC1091 # the test on an embedded store is not followed
export SPILLWAY_TEST_STORE=server
source "$(dirname "$0")/test_bench.sh"
