#!/usr/bin/env bash
# The Debian packages follow the policy, lead from a fresh root to a first answer, and a C program can be
# built with them. SPILLWAY_TEST_URI is a server.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
: "${SPILLWAY_TEST_URI:?must be a server: run this under tools/test-server run}"

lintian --allow-root --fail-on error,warning "$SPILLWAY_DIST"/*.changes
echo "lintian has no errors and no warnings"

fresh_root root
root=$work/root
in_root=("$packages/in_root" "$root")
cp "$tests/store_commands" "$root/srv"

began=$SECONDS
install "$root" ./spillway_*.deb
answer=$("${in_root[@]}" sh /srv/store_commands /srv/feeds)
same "the newest element" '25	{ "n" : 26 }' "$answer"
echo "from a fresh root by the package to the first answer: $((SECONDS - began)) s, downloads included"

same "the version" "spillway $version" "$("${in_root[@]}" spillway --version)"
answer=$("${in_root[@]}" sh /srv/store_commands "${SPILLWAY_TEST_URI%/}/packages_deb_$$")
same "the newest element on a server" '25	{ "n" : 26 }' "$answer"
logged "${in_root[@]}" spillway serve "${SPILLWAY_TEST_URI%/}/packages_deb_$$" --check
for file in usr/share/man/man1/spillway.1.gz usr/share/bash-completion/completions/spillway; do
    [ -s "$root/$file" ] || fail "the package has no $file"
done
for unit in "$root"/lib/systemd/system/spillway-*; do
    # The root has no systemd, and so none of the units that this one waits for.
    remarks=$(systemd-analyze verify --man=no --recursive-errors=no "$unit" 2>&1 |
        grep -F "${unit##*/}" | grep -v "/usr/bin/spillway is not executable" || true)
    [ -z "$remarks" ] || fail "systemd-analyze verify: $remarks"
done
echo "the program, its server store, the gateway, the manual and the units are installed"

install "$root" ./libspillway*.deb gcc libc6-dev pkg-config
cp "$source_folder/examples/consumer/consumer.c" "$root/srv"
# shellcheck disable=SC2016 # sh expands it
logged "${in_root[@]}" sh -euc 'cd /srv
    cc -std=c17 consumer.c -o consumer $(pkg-config --cflags --libs spillway)
    ./consumer'
cat >"$root/srv/server.c" <<'CODE'
#include <spillway/spillway.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    spill_store_t *store = NULL;
    spill_error_t error = {0};
    if (argc == 2 && spill_store_open(argv[1], NULL, &store, &error) == SPILL_OK &&
        spill_store_close(store, &error) == SPILL_OK)
        return 0;
    puts(error.message);
    return 1;
}
CODE
# shellcheck disable=SC2016 # sh expands it
logged "${in_root[@]}" sh -euc 'cd /srv
    cc -std=c17 server.c -o server $(pkg-config --cflags --libs spillway)
    ./server "$1"' server "${SPILLWAY_TEST_URI%/}/packages_deb_$$"
echo "a C program is built with pkg-config, and opens an embedded store and a server"
