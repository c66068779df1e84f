#!/usr/bin/env bash
# Push past 16 MB through the gateway with the Go driver.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

use_pymongo # which checks the result
command -v go >/dev/null || skip "go is not installed"
program=$(fetched_go "$here/../../examples/drivers/go") ||
    skip "the Go driver is not cached and cannot be fetched"
push_past_the_limit "$program/program"
