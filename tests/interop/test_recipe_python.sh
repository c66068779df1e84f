#!/usr/bin/env bash
# Compare the recipe for Python with the program.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_recipes.py" "$uri" python3 "$here/../../examples/recipes/python/feed.py" ||
    fail "the recipe and the program differ"
