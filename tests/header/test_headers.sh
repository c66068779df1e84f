#!/usr/bin/env bash
# Each public header compiles alone, as C17 and as C++, without a warning.
set -euo pipefail

warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
read -ra bson < <(pkg-config --cflags libbson-1.0 | sed 's/-I/-isystem/g')
headers=("$SPILLWAY_SOURCE"/include/spillway/*.h)

for header in "${headers[@]}"; do
    source="#include <spillway/${header##*/}>"$'\n'"typedef int not_empty;"
    echo "$source" | cc -std=c17 -Wstrict-prototypes "${warnings[@]}" \
        -I"$SPILLWAY_SOURCE/include" "${bson[@]}" -fsyntax-only -x c -
    echo "$source" | c++ -std=c++17 "${warnings[@]}" \
        -I"$SPILLWAY_SOURCE/include" "${bson[@]}" -fsyntax-only -x c++ -
done
echo "${#headers[@]} headers compile alone, as C17 and as C++17"
