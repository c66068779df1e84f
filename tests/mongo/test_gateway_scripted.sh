#!/usr/bin/env bash
# The gateway's relay in front of a scripted server: what it passes on, answers, refuses and closes.
# shellcheck disable=SC1091 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

python=$(python_with_pymongo) || exit $?
PYTHONDONTWRITEBYTECODE=1 "$python" "$here/gateway_scripted.py" || fail "see above"
