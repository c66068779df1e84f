#!/usr/bin/env bash
# Views of a served collection that were made on the server itself, through the gateway.
# shellcheck disable=SC1091 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

python=$(python_with_pymongo) || exit $?
PYTHONDONTWRITEBYTECODE=1 "$python" "$here/gateway_views.py" || fail "see above"
