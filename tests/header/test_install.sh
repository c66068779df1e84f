#!/usr/bin/env bash
# Install into an empty prefix, then build and run somebody else's program against what is there:
# with pkg-config and a plain compiler, and with CMake's find_package. The prefix is moved in
# between, as a package would be.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cached() {
    sed -n "s/^$1:[A-Z]*=//p" "$SPILLWAY_BUILD/CMakeCache.txt"
}

# An instrumented library needs users that are instrumented alike.
case "$(cached SPILLWAY_SANITIZE)" in
address) instrument=(-fsanitize=address -fsanitize=undefined) ;;
thread) instrument=(-fsanitize=thread) ;;
*) instrument=() ;;
esac
if [ "$(cached SPILLWAY_COVERAGE)" = ON ]; then
    instrument=(--coverage)
fi
if [ "$(cached BUILD_SHARED_LIBS)" = OFF ]; then
    static=(--static)
else
    static=()
fi
compiler=$(cached CMAKE_C_COMPILER)

cmake --install "$SPILLWAY_BUILD" --prefix "$folder/made" >"$folder/install.log"
mv "$folder/made" "$folder/prefix"
libdir=$(dirname "$(find "$folder/prefix" -name 'libspillway.*' -print -quit)")
export LD_LIBRARY_PATH=$libdir
consumer=$SPILLWAY_SOURCE/examples/consumer

echo "the pages that the program, the gateway and the alerts name:"
pages=$(grep -rhoaE 'docs/[a-z-]+/[a-z-]+\.md' "$folder"/prefix/{bin,libexec} "$libdir"/libspillway.* \
    "$folder/prefix/share/spillway/monitoring/alerts.yml" | sort -u)
grep -x docs/reference/gateway.md <<<"$pages"
while read -r page; do
    test -f "$folder/prefix/share/doc/spillway/$page"
done <<<"$pages"

echo "pkg-config and a plain compiler:"
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags --libs "${static[@]}" spillway)
"$compiler" -std=c17 "${instrument[@]}" "$consumer/consumer.c" -o "$folder/consumer" "${flags[@]}"
"$folder/consumer"

echo "the tutorial's program:"
# The tutorial's listings in C: listing 1, 2, ... without the fences.
listing() {
    awk -v wanted="$1" '/^```$/ { inside = 0 }
        inside && number == wanted
        /^```c$/ { inside = 1; number++ }' "$SPILLWAY_SOURCE/docs/tutorial/c-program.md"
}
listing 1 >"$folder/tutorial.c"
"$compiler" -std=c17 -Wall -Wextra -Werror "${instrument[@]}" "$folder/tutorial.c" \
    -o "$folder/tutorial" "${flags[@]}"
"$folder/tutorial" | diff - <(echo '0: { "type" : "like", "by" : "ada" }')
"$folder/tutorial" "rocksdb:$folder/feeds" >/dev/null
"$folder/tutorial" "rocksdb:$folder/feeds" | diff - <(
    echo '1: { "type" : "like", "by" : "ada" }'
    echo '0: { "type" : "like", "by" : "ada" }'
)
diff "$folder/tutorial.c" <(sed '1,/^ \*\/$/d' "$SPILLWAY_SOURCE/examples/first_program.c") ||
    {
        echo "docs/tutorial/c-program.md and examples/first_program.c differ" >&2
        exit 1
    }

echo "the tutorial's second listing:"
# Listing NUMBER is in FILE, line for line.
listing_from() {
    local begin
    listing "$1" >"$folder/listing"
    begin=$(grep -nxF -m 1 "$(head -n 1 "$folder/listing")" "$2" | cut -d : -f 1)
    tail -n "+${begin:-1}" "$2" | head -n "$(wc -l <"$folder/listing")" | diff "$folder/listing" - ||
        {
            echo "docs/tutorial/c-program.md and $2 differ" >&2
            exit 1
        }
}
second=$SPILLWAY_SOURCE/examples/second_program.c
listing_from 2 "$second"
"$compiler" -std=c17 -Wall -Wextra -Werror "${instrument[@]}" "$second" -o "$folder/second" "${flags[@]}"
"$folder/second" | diff - <(seq 200 -1 0)

echo "the tutorial's third listing:"
third=$SPILLWAY_SOURCE/examples/third_program.c
listing_from 3 "$third"
"$compiler" -std=c17 -Wall -Wextra -Werror "${instrument[@]}" "$third" -o "$folder/third" "${flags[@]}"
"$folder/third" | diff - <(echo "300 runs, 6300 minutes")

echo "a program that uses the driver, too:"
cat >"$folder/pool.c" <<'END'
#include <spillway/mongoc.h>

int main(void)
{
    spill_store_t *store;
    spill_error_t error;
    return spill_store_open_pool(NULL, "x", NULL, &store, &error) != SPILL_INVALID;
}
END
read -ra both < <(pkg-config --cflags --libs "${static[@]}" spillway libmongoc-1.0)
"$compiler" -std=gnu17 "${instrument[@]}" "$folder/pool.c" -o "$folder/pool" "${both[@]}"
"$folder/pool"

echo "the tutorial's program with its own collection:"
own=$consumer/own_collection.c
for number in 4 5 6; do
    listing_from "$number" "$own"
done
"$compiler" -std=gnu17 -Wall -Wextra -Werror "${instrument[@]}" "$own" -o "$folder/own" "${both[@]}"
if "$folder/own" mongodb://127.0.0.1:1 2>"$folder/usage"; then
    echo "a URI without a database was accepted" >&2
    exit 1
fi
grep -q '^usage: own_collection' "$folder/usage"
if [ -n "${SPILLWAY_TEST_URI:-}" ]; then
    "$folder/own" "${SPILLWAY_TEST_URI%/*}/own_$$" | diff - <(printf '120: comment 120\n119: comment 119\n')
fi
unset PKG_CONFIG_PATH

echo "find_package:"
cmake -G Ninja -S "$consumer" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/prefix" \
    -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS="${instrument[*]}" >"$folder/configure.log"
cmake --build "$folder/build" >"$folder/build.log"
"$folder/build/consumer"

# What else has to be there.
for file in bin/spillway libexec/spillway/spillway-serve share/spillway/spillway-serve.service share/man/man1/spillway.1 share/bash-completion/completions/spillway share/zsh/site-functions/_spillway share/fish/vendor_completions.d/spillway.fish; do
    if [ ! -e "$folder/prefix/$file" ]; then
        echo "not installed: $file" >&2
        exit 1
    fi
done
