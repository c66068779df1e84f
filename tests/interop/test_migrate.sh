#!/usr/bin/env bash
# Arrays are laid out by a migration that is killed and started again, while programs with pymongo
# push, edit and pull.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_migrate.py" "$uri" || fail "an array is not what its writers were told"
