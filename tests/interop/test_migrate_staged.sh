#!/usr/bin/env bash
# Arrays are brought to layouts that are not in place, by a migration that is killed and started
# again, while programs with pymongo push, edit and pull; of generated arrays and, with SPILLWAY_LONG
# and where SPILLWAY_DATA names a folder of data sets, of more of them and of real ones.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

use_pymongo
sets=${SPILLWAY_SETS:-small}
if [ -n "${SPILLWAY_LONG:-}" ] && [ -z "${SPILLWAY_SETS:-}" ]; then
    sets="small ${SPILLWAY_DATA:+openstack_updates gitter_chat eol_releases}"
fi
for set in $sets; do
    new_database
    python3 "$here/test_migrate_staged.py" "$uri" "$set" ||
        fail "$set: an array is not what its writers were told"
done
