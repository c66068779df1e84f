#!/usr/bin/env bash
# Failover, transactions and load balancing through the gateway, in front of a scripted replica set.
# shellcheck disable=SC1091 # not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"
source "$here/../interop/drivers.sh"

command -v python3 >/dev/null || skip "python3 is not installed"
# An older pymongo knows no load balancers, and no command bulkWrite.
PYTHONPATH=$(fetched_pymongo) || skip "pymongo is not cached and cannot be fetched"
export PYTHONPATH
PYTHONDONTWRITEBYTECODE=1 python3 "$here/gateway_failover.py" || fail "see above"
