#!/usr/bin/env bash
# Push past 16 MB through the gateway with the Node driver.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

use_pymongo # which checks the result
use_npm mongodb "$NODE_MONGODB"
program=$here/../../examples/drivers/node
grep -q "\"mongodb\": \"$NODE_MONGODB\"" "$program/package.json" ||
    fail "package.json of the program names another version than $NODE_MONGODB"
cp "$program/push.mjs" . # Node looks for modules beside it
ln -s "$modules" node_modules
push_past_the_limit node "$PWD/push.mjs"
