#!/usr/bin/env bash
# Compare a store's documents, as pymongo reads them, field by field with the pattern's descriptions.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
new_database
python3 "$here/test_pymongo.py" "$uri" ||
    fail "the documents differ from the pattern's descriptions"
