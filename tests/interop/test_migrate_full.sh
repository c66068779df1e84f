#!/usr/bin/env bash
# A migration reshapes full documents, on which every push fails, while programs with pymongo write.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_migrate_full.py" "$uri" || fail "a full document differs from the acknowledged writes"
