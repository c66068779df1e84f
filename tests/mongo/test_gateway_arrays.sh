#!/usr/bin/env bash
# pymongo through the gateway, with arrays that have pages, against a server with users.
# shellcheck disable=SC1091 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

needs SPILLWAY_TEST_AUTH_URI
python=$(python_with_pymongo) || exit $?
PYTHONDONTWRITEBYTECODE=1 "$python" "$here/gateway_arrays.py" || fail "see above"
