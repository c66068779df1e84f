#!/usr/bin/env bash
# Compare the recipe for Go with the program.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

command -v go >/dev/null || skip "go is not installed"
use_pymongo # for the test, which is the same for all recipes
program=$(fetched_go "$here/../../examples/recipes/go") ||
    skip "the Go driver is not cached and cannot be fetched"
new_database
python3 "$here/test_recipes.py" "$uri" "$program/program" || fail "the recipe and the program differ"
