#!/usr/bin/env bash
# Push past 16 MB through the gateway with pymongo.
# shellcheck disable=SC1091,SC2034,SC2154 # lib.sh and gateway.sh are not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

use_pymongo # which checks the result
bounds=()
push_past_the_limit python3 "$here/../../examples/drivers/python/push.py"
