#!/usr/bin/env bash
# Memory for connections of the gateway, idle ones and users', and what it does if the process may open few files.
# shellcheck disable=SC1091 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

needs SPILLWAY_TEST_AUTH_URI
python=$(python_with_pymongo) || exit $?
PYTHONDONTWRITEBYTECODE=1 "$python" "$here/gateway_connections.py" || fail "see above"
