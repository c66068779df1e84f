#!/usr/bin/env bash
# Compare the recipe for Node with the program.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo # for the test, which is the same for all recipes
use_npm mongodb "$NODE_MONGODB"
grep -q "\"mongodb\": \"$NODE_MONGODB\"" "$here/../../examples/recipes/node/package.json" ||
    fail "package.json of the recipe names another driver than $NODE_MONGODB"
new_database
cp "$here/../../examples/recipes/node/feed.mjs" . # Node looks for modules beside it
ln -s "$modules" node_modules
python3 "$here/test_recipes.py" "$uri" node "$PWD/feed.mjs" ||
    fail "the recipe and the program differ"
