#!/usr/bin/env bash
# Recipes and programs that append to one owner at the same time.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_recipe_race.py" "$uri" || fail "concurrent appends of recipes and programs failed"
