#!/usr/bin/env bash
# The packages are upgraded in place and removed without a trace; stores of version 0.1 open afterwards.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

before=$version~earlier

# earlier FILE: repack a package of this release with an earlier version, and one file more.
earlier() {
    local folder=$work/repacked name
    rm -rf "$folder"
    dpkg-deb --raw-extract "$1" "$folder"
    name=$(sed -n 's/^Package: //p' "$folder/DEBIAN/control")
    sed -i "s/^Version: .*/Version: $before/; s/(= $version)/(= $before)/" "$folder/DEBIAN/control"
    mkdir -p "$folder/usr/share/$name"
    echo "of the earlier version" >"$folder/usr/share/$name/spillway-earlier"
    dpkg-deb --root-owner-group --build "$folder" "$work/earlier/${name}_$before.deb" >/dev/null
}

# Every path of the root, except what apt, dpkg and programs write while they work.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./srv -o -path ./packages \
        -o -path ./tmp -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt \
        -o -path ./var/lib/dpkg -o -path ./etc/ld.so.cache -o -path ./etc/resolv.conf -o -path ./etc/hosts \) \
        -prune -o -print | sort)
}

# open_store NAME: the store of version 0.1 has all its elements, and accepts another one.
open_store() {
    local preset count
    tar --extract --zstd --file "$tests/stores/$1.tar.zst" --directory "$root/srv"
    rm -rf "$root/srv/$1"
    mv "$root/srv/store" "$root/srv/$1"
    logged "${in_root[@]}" spillway verify "/srv/$1"
    for preset in feed-recent feed; do
        "${in_root[@]}" spillway export "/srv/$1" "$preset" >"$work/exported"
        same "$1, $preset: elements" 63 "$(wc -l <"$work/exported")" # 6, and 61 - 1 removed - 3 trimmed
        grep -q '"seq":30,"element":{.*"edited" }' "$work/exported" || fail "$1, $preset: the edit is lost"
        ! grep -qE '"owner":"long","seq":(0|1|2|40),' "$work/exported" ||
            fail "$1, $preset: a removed element is back"
        logged "${in_root[@]}" spillway append "/srv/$1" "$preset" long '{"n": 61}'
        count=$("${in_root[@]}" spillway count "/srv/$1" "$preset" long --json |
            sed -n 's/.*"count" *: *\([0-9]*\).*/\1/p')
        same "$1, $preset: elements of long after an append" 58 "$count"
    done
    logged "${in_root[@]}" spillway verify "/srv/$1"
}

fresh_root root
root=$work/root
in_root=("$packages/in_root" "$root")
logged "${in_root[@]}" true
files >"$work/before"

mkdir "$work/earlier"
for file in "$SPILLWAY_DIST"/spillway_*.deb "$SPILLWAY_DIST"/libspillway[0-9.]*_*.deb \
    "$SPILLWAY_DIST"/libspillway-dev_*.deb; do
    earlier "$file"
done
SPILLWAY_DIST=$work/earlier install "$root" ./*.deb
[ -e "$root/usr/share/spillway/spillway-earlier" ] || fail "the earlier version is not installed"
mkdir -p "$root/etc/spillway"
echo "mongodb://127.0.0.1/shop" >"$root/etc/spillway/serve.uri"
cp "$tests/store_commands" "$root/srv"
logged "${in_root[@]}" sh /srv/store_commands /srv/feeds

install "$root" ./*.deb
# shellcheck disable=SC2016 # dpkg-query replaces the name
installed=$("${in_root[@]}" dpkg-query -W -f '${db:Status-Abbrev}${Version}\n' \
    spillway 'libspillway*' | sort -u)
same "the installed versions" "ii $version" "$installed"
[ -z "$(find "$root/usr" -name spillway-earlier)" ] || fail "files of the earlier version are left"
same "the administrator's file" "mongodb://127.0.0.1/shop" "$(<"$root/etc/spillway/serve.uri")"
logged "${in_root[@]}" spillway append /srv/feeds feed ada '{"n": 27}'
logged "${in_root[@]}" spillway verify /srv/feeds
echo "upgraded in place from $before to $version"

open_store first
open_store last
echo "stores of the first and the last program of version 0.1 open, verify and accept an append"

logged "${in_root[@]}" sh -euc 'export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -y remove spillway "libspillway*"'
! [ -e "$root/usr/bin/spillway" ] || fail "remove leaves the program"
same "the administrator's file" "mongodb://127.0.0.1/shop" "$(<"$root/etc/spillway/serve.uri")"
# shellcheck disable=SC2016 # sh and dpkg-query expand it
logged "${in_root[@]}" sh -euc 'export DEBIAN_FRONTEND=noninteractive
    left=$(dpkg-query -W -f "\${Package} " spillway "libspillway*" 2>/dev/null || true)
    [ -z "$left" ] || dpkg --purge $left
    apt-get -qq -y autoremove --purge'
rm -r "$root/etc/spillway"
files >"$work/after"
diff "$work/before" "$work/after" || fail "the removed packages leave files, or take some along"
echo "removed without a trace"
