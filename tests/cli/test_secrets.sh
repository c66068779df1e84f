#!/usr/bin/env bash
# The program never prints a password, however a connection string is misspelt and wherever it is given:
# not on stdout, not on stderr, and not in a file that it writes.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

secret=Tr0ub4dor
second=h0rse
mkdir run && cd run || exit 1

uris=(
    "MONGODB://u:$secret@h/db"
    "mongo://u:$secret@h/db"
    "mongodb:/u:$secret@h/db"
    "mongodb:u:$secret@h/db"
    "mongodb//u:$secret@h/db"
    "'mongodb://u:$secret@h/db'"
    " mongodb://u:$secret@h/db"
    "SPILLWAY_URI=mongodb://u:$secret@h/db"
    "rocksdb://u:$secret@h"
    "mongo://u:$secret@$second:/ x%@h/db"
    "u:$secret@h/db"
    "mongodb://u:$secret%ZZ@h/db"
    "mongodb://u:$secret $second@h/"
)

# hidden ARGUMENT...: run the program; it must fail and print no secret.
hidden() {
    "$SPILLWAY" "$@" >../out 2>../err </dev/null
    local status=$?
    [[ $status == [234] ]] || fail "spillway $* ended with $status"
    grep -qE "$secret|$second" ../out ../err &&
        fail "spillway $* prints a password: $(cat ../out ../err)"
    [ -s ../err ] || fail "spillway $* prints no message"
}

echo '{"spillwayPlan": 1, "arrays": [], "sprawl": []}' >../plan.json
echo '{"by": "alice"}' >../one.ndjson

"$SPILLWAY" define ../store ev --preset feed --quiet

# every_command STORE
every_command() {
    hidden append "$1" ev alice 1
    hidden backup "$1" copy
    hidden bench "$1" --lengths 10
    hidden consolidate "$1" ../plan.json --execute --yes --log ../log
    hidden completion "$1"
    hidden contains "$1" ev alice 1
    hidden control "$1" status
    hidden convert "$1" ev --to reference
    hidden copy "$1" ../other
    hidden copy ../other "$1"
    hidden count "$1" ev alice
    hidden define "$1" ev --preset feed
    hidden drop "$1" ev --yes
    hidden edit "$1" ev alice 1 2
    hidden explain "$1" ev alice
    hidden export "$1" ev
    hidden import "$1" ev ../one.ndjson --owner by
    hidden import ../store ev "$1" --elements list
    hidden import ../store ev "$1" --elements list --collection things
    hidden migrate "$1" ../plan.json --execute --log ../log
    hidden owners "$1" ev
    hidden plan "$1" --output ../plan.out
    hidden plan-set ../plan.json "$1" --migrate
    hidden read "$1" ev alice
    hidden remove "$1" ev alice 1
    hidden repair "$1"
    hidden report "$1" --output ../report.html
    hidden restore "$1" copy
    hidden scan "$1" --json
    hidden serve "$1" --check
    hidden stats "$1" --json
    hidden status "$1" --owners
    hidden sweep "$1" ev
    hidden threshold "$1" ev 10
    hidden trim "$1" ev alice --keep 1
    hidden update "$1" ev alice '{}'
    hidden verify "$1" --json
}

listed=$("$SPILLWAY" --help | grep -E '^  [a-z-]+ +[A-Z]' | awk '{ print $1 }' | sort)
cases=$(declare -f every_command)
for command in $listed; do
    [[ $cases == *"hidden $command "* ]] || fail "no case runs the command $command"
done

for uri in "MONGODB://u:$secret@h/db" "mongodb:/u:$secret $second@h/db" "rocksdb://u:$secret@h"; do
    every_command "$uri"
done
for uri in "${uris[@]}"; do
    hidden append "$uri" ev alice 1
    hidden scan "$uri"
    printf '%s\n' "$uri" >../uri
    hidden count @../uri ev alice
    hidden define @../uri ev --preset feed
    SPILLWAY_URI=$uri hidden verify -
    SPILLWAY_URI=$uri hidden verify env: --verbose
done
printf '%s\n' "${uris[7]}" >../uri
every_command @../uri
printf '\xef\xbb\xbf%s\n' "mongodb://u:$secret@h/db" >../uri
hidden verify @../uri

# Without a scheme these may name a folder, so no command may create it here.
for uri in "bob:$secret@localhost" "mongodb=bob:$secret@h"; do
    hidden append "$uri" ev alice 1
    hidden scan "$uri"
    hidden verify "$uri"
    hidden "$uri"
    printf '%s\n' "$uri" >../uri
    hidden count @../uri ev alice
done

# ---- in another place ----------------------------------------------------------------------------

"$SPILLWAY" define ../feeds ev --preset feed >../out
for uri in "${uris[3]}" "${uris[9]}" \
    "mongodb://u:$secret@127.0.0.1:1/db?serverSelectionTimeoutMS=100"; do
    hidden "$uri"
    hidden help "$uri"
    hidden count ../feeds "$uri" alice
    hidden read ../feeds "$uri" alice
    hidden edit ../feeds ev alice "$uri" 1
    hidden append ../feeds ev alice "$uri"
    hidden trim ../feeds ev alice --keep "$uri"
    hidden trim ../feeds ev alice --older-than "$uri"
    hidden import ../feeds ev "$uri" --owner by
    hidden import ../feeds ev ../one.ndjson --owner by --format "$uri"
    hidden define ../feeds other --preset "$uri"
    hidden define ../feeds other --layout "$uri"
    hidden define ../feeds "$uri" --preset feed
    hidden migrate ../feeds "$uri"
    hidden report "$uri"
    hidden backup ../feeds "$uri"
    hidden count ../feeds ev alice "$uri"
    hidden count ../feeds ev "--$uri"
done

for uri in "mongodb:u:$secret@h" "'mongodb:u:$secret@h'" "mongodb:\\\\u:$secret@h"; do
    hidden backup ../feeds "$uri"
    hidden copy ../feeds "$uri"
    hidden define "$uri" ev --preset feed
done

# ---- files ---------------------------------------------------------------------------------------

cd ..
written=$(grep -rlE "$secret|$second" . | grep -vE '^\./uri$')
[ -z "$written" ] || fail "a password is in $written"
named=$(find . | grep -E "$secret|$second")
[ -z "$named" ] || fail "a password is in a file's name: $named"
