#!/usr/bin/env bash
# Documents near the size limit with few, large elements: the dry run predicts which are adopted.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_migrate_full_sizes.py" "$uri" || fail "a full document is not adopted as predicted"
