#!/usr/bin/env bash
# A migration reshapes arrays. It is killed and restarted while programs with pymongo push, edit and
# pull.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_migrate.py" "$uri" || fail "an array differs from the acknowledged writes"
