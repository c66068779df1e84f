#!/usr/bin/env bash
# Compare the recipe for PHP with the program.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_php
use_pymongo # for the test, which is the same for all recipes
new_database
python3 "$here/test_recipes.py" "$uri" php "$here/../../examples/recipes/php/feed.php" ||
    fail "the recipe and the program differ"
