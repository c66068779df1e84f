#!/usr/bin/env bash
# Each public header compiles alone, as C17 and as C++, without a warning.
set -euo pipefail

warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
read -ra bson < <(pkg-config --cflags libbson-1.0 | sed 's/-I/-isystem/g')
read -ra mongoc < <(pkg-config --cflags libmongoc-1.0 | sed 's/-I/-isystem/g')
headers=("$SPILLWAY_SOURCE"/include/spillway/*.h)

driver=$(grep -l 'mongoc/mongoc.h\|spillway/mongoc.h' "${headers[@]}" || true)
if [ "$driver" != "$SPILLWAY_SOURCE/include/spillway/mongoc.h" ]; then
    echo "only spillway/mongoc.h may include the driver, not: $driver" >&2
    exit 1
fi

for header in "${headers[@]}"; do
    used=("${bson[@]}")
    if [ "${header##*/}" = mongoc.h ]; then
        used=("${mongoc[@]}")
    fi
    source="#include <spillway/${header##*/}>"$'\n'"typedef int not_empty;"
    echo "$source" | cc -std=c17 -Wstrict-prototypes "${warnings[@]}" \
        -I"$SPILLWAY_SOURCE/include" "${used[@]}" -fsyntax-only -x c -
    echo "$source" | c++ -std=c++17 "${warnings[@]}" \
        -I"$SPILLWAY_SOURCE/include" "${used[@]}" -fsyntax-only -x c++ -
done
echo "${#headers[@]} headers compile alone, as C17 and as C++17"
