#!/usr/bin/env bash
# Deletes through one gateway beside pushes and spills through another.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

needs SPILLWAY_TEST_URI
python=$(python_with_pymongo) || exit $?
new_database "$SPILLWAY_TEST_URI"
"$SPILLWAY" define "$uri" posts.f --preset gateway --collection posts --array f --threshold 3 --page 2 --quiet ||
    fail "define"
SPILLWAY=$SPILLWAY STORE=$uri PYTHONDONTWRITEBYTECODE=1 "$python" "$here/gateway_race.py" || fail "see above"
