#!/usr/bin/env bash
# Layout capped with a sort field, which keeps the top-N elements.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars in it
source "$(dirname "$0")/lib.sh"

# kept OWNER NUMBERS OPTION...: `read` with these options returns exactly these numbers.
kept() {
    local owner=$1 expected=$2
    shift 2
    expect 0 read "$db" scores "$owner" "$@"
    [ "$(cut -f1 out | paste -sd' ')" = "$expected" ] ||
        fail "$owner has $(cut -f1 out | paste -sd' '), not $expected"
}

new_store
expect 0 define "$db" scores --layout capped --threshold 3 --sort-by game.score --id-field id
has out 'scores: capped, keep best, threshold 3'
has out '; those highest by game.score'
expect 0 append "$db" scores ada '{"id": "a", "game": {"score": 5}}' \
    '{"id": "b", "game": {"score": 1}}' '{"id": "c", "game": {"score": 9}}'
is err ''
expect 0 append "$db" scores ada '{"id": "d", "game": {"score": 3}}'
is out '3'
is err ''
expect 0 append "$db" scores ada '{"id": "e", "game": {"score": 2}}'
is out '4'
has err '1 of 1 element is not kept'
expect 0 append "$db" scores ada '{"id": "f", "game": {"score": 0}}' \
    '{"id": "g", "game": {"score": 7}}' --json
is out '{"first":5,"count":2,"repeated":false,"dropped":1}'
kept ada '6 2 0'
kept ada '2 6 0' --top
kept ada '2' --top --limit 1
is err ''
kept ada '0 2 6' --oldest
kept ada '2 0' --before 6
counts "$db" scores ada 3
clean "$db"

# The window has an operation's id even if none of its elements were kept.
expect 0 append "$db" scores ada --op x@0 '{"id": "h", "game": {"score": 1}}'
is out '7'
expect 0 append "$db" scores ada --op x@0 '{"id": "h", "game": {"score": 1}}'
is out '7'
has err 'nothing was written this time'

# If an edit lowers an element's rank, the next element takes its place.
expect 0 edit "$db" scores ada --id '"c"' '{"id": "c", "game": {"score": 4}}'
kept ada '6 0 2' --top
expect 0 append "$db" scores ada '{"id": "i", "game": {"score": {"$date": "2026-01-01T00:00:00Z"}}}'
kept ada '8 6 0' --top
expect 3 remove "$db" scores ada --id '"c"'
expect 0 remove "$db" scores ada --id '"i"'
expect 0 append "$db" scores ada '{"id": "j"}'
kept ada '9 6 0'
expect 0 trim "$db" scores ada --keep 2
kept ada '9 6'
clean "$db"
expect 0 explain "$db" scores ada
has out '66 % of 3'
has out '[6..10)  2 elements'
has out 'its lowest ranking elements are dropped'
expect 0 export "$db" scores ada --documents
has out '"gaps" : [ { "$numberLong" : "7" }, { "$numberLong" : "2" } ]'

# ---- refused calls -------------------------------------------------------------------------------

expect 4 define "$db" scores --sort-by score
has err "sortField cannot change from 'game.score' to 'score'"
expect 0 define "$db" scores --threshold 2
expect 2 define "$db" other --layout capped --threshold 1001 --sort-by score
has err 'must be at most 1000'
expect 2 define "$db" other --layout capped --sort-by score --top 3
expect 2 append "$db" scores ada '{"game": {"score": {"$numberDecimal": "1000000.50"}}}'
has err "element 0: 'game.score' is a decimal128"
expect 2 edit "$db" scores ada 9 '{"game": {"score": {"$numberDecimal": "1000000.50"}}}'
kept ada '9 6'

# ---- copies ---------------------------------------------------------------------------------------

# A copy keeps the numbers and the next number.
expect 0 copy "$db" copy.db
has out '"elements":2,"before":0,"verified":2,"differences":0'
expect 0 copy "$db" copy.db
has out '"elements":0,"before":2,"verified":2,"differences":0'
expect 0 append copy.db scores ada '{"game": {"score": 0}}' --json
is out '{"first":10,"count":1,"repeated":false}'
clean copy.db
expect 1 copy "$db" copy.db
has out 'element 10: the target has an element that the source does not have'

# Elements that the source dropped since the last copy are dropped from the copy too.
expect 0 copy "$db" second.db
expect 0 append "$db" scores ada '{"game": {"score": 70}}' '{"game": {"score": 60}}'
expect 0 copy "$db" second.db
has out '"differences":0'
expect 0 read second.db scores ada
[ "$(cut -f1 out | paste -sd' ')" = '11 10' ] || fail 'the copy has not what the source has'
clean second.db

# ---- bytes ---------------------------------------------------------------------------------------

expect 0 define "$db" tight --layout capped --threshold 9 --sort-by score --op-window 1 \
    --max-bytes 64KB --collection tight
printf '{"score": 1}\n{"score": 2, "text": "%050000d"}\n' 0 >two.ndjson
printf '{"score": 3, "text": "%050000d"}\n' 0 >third.ndjson
expect 0 append "$db" tight ada - <two.ndjson
is err ''
expect 0 append "$db" tight ada - --json <third.ndjson
is out '{"first":2,"count":1,"repeated":false,"crowdedOut":2}'
has err '2 older elements were dropped: with the head'
expect 0 drop "$db" tight --yes

# ---- import --------------------------------------------------------------------------------------

printf '{"u": "imported", "game": {"score": %s}}\n' 5 1 9 3 '{"$numberDecimal": "7"}' >games.ndjson
expect 0 import "$db" scores games.ndjson --owner u --skip-bad=1 --quiet
has err "games.ndjson:5: 'game.score' is a decimal128"
has out '4 records imported, 2 of them not kept by the cap, 1 bad ones skipped'
kept imported '2 0'
expect 0 drop "$db" scores imported --yes

# ---- conversion to another layout ----------------------------------------------------------------

expect 0 convert "$db" scores --to outlier --as all
has out '"elements":2,"before":0,"verified":2,"differences":0'
expect 0 read "$db" all ada
[ "$(cut -f1 out | paste -sd' ')" = '11 10' ] || fail 'numbers are not kept'
clean "$db"

# ---- conversion from another layout --------------------------------------------------------------

expect 0 define "$db" games --preset feed --collection games --page-collection games.pages \
    --array games --threshold 3 --page 3
for score in 5 1 9 3 7 9 2 8; do
    expect 0 append "$db" games ada "{\"score\": $score}"
done
expect 0 remove "$db" games ada 2
expect 2 convert "$db" games --to outlier --as none --sort-by score
has err "sortField to 'capped', too"
expect 0 convert "$db" games --to capped --sort-by score --as top --threshold 3
has out '"elements":7,"before":0,"verified":3,"dropped":4,"differences":0'
has err "4 elements are not in 'top', which keeps only the best"
expect 0 read "$db" top ada --top
[ "$(cut -f1 out | paste -sd' ')" = '5 7 4' ] || fail "the best are not $(cut -f1 out | paste -sd' ')"
expect 4 convert "$db" games --as top --sort-by other
has err "'top' exists, and its sortField is 'score'"
expect 0 append "$db" games ada '{"score": 10}' '{"score": 0}'
expect 0 convert "$db" games --as top
has out '"elements":2,"before":3,"verified":3,"dropped":6,"differences":0'
expect 0 read "$db" top ada --top
[ "$(cut -f1 out | paste -sd' ')" = '8 5 7' ] || fail "the best are not $(cut -f1 out | paste -sd' ')"
expect 0 append "$db" games ada '{"score": {"$numberDecimal": "7"}}'
expect 2 convert "$db" games --as top
has err 'is a decimal128'
expect 0 remove "$db" games ada 10
expect 0 convert "$db" games --as top --finish --yes
expect 0 append "$db" top ada '{"score": 11}'
is out '11'
# A capped array that keeps the top-N still does so after a conversion to capped.
expect 0 convert "$db" top --to capped --as fewer --threshold 2
expect 0 read "$db" fewer ada --top
[ "$(cut -f1 out | paste -sd' ')" = '11 8' ] || fail "the best are not $(cut -f1 out | paste -sd' ')"
clean "$db"
expect 0 drop "$db" scores ada --yes
expect 0 append "$db" scores ada '{"id": "k", "game": {"score": 1}}'
is out '0'
clean "$db"
