#!/usr/bin/env bash
# Push past 16 MB through the gateway with mongoose.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

use_pymongo # which checks the result
use_npm mongoose "$MONGOOSE"
program=$here/../../examples/drivers/mongoose
grep -q "\"mongoose\": \"$MONGOOSE\"" "$program/package.json" ||
    fail "package.json of the program names another version than $MONGOOSE"
cp "$program/push.mjs" . # Node looks for modules beside it
ln -s "$modules" node_modules
push_past_the_limit node "$PWD/push.mjs"
