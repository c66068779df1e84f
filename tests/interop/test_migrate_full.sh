#!/usr/bin/env bash
# Documents that are full, to which every push fails, are laid out beside programs with pymongo.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_migrate_full.py" "$uri" || fail "a full document is not what its writers were told"
