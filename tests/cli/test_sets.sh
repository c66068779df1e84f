#!/usr/bin/env bash
# Sets: `define --unique`, `append --if-absent`, `contains`, `remove --id` of elements that are their own ids.
# This test also runs on a server.
# shellcheck disable=SC1091,SC2016,SC2154 # lib.sh is not followed; JSON has dollars
source "$(dirname "$0")/lib.sh"

new_store

# says STATUS EXPECTED COMMAND...: the command ends with that exit code and prints exactly that.
says() {
    local status=$1 expected=$2 got code
    shift 2
    got=$("$SPILLWAY" "$@" 2>err)
    code=$?
    [ "$code" = "$status" ] || fail "$*: exit code $code, not $status: $(cat err)"
    [ "$got" = "$expected" ] || fail "$*: '$got', not '$expected'"
}

for layout in outlier reference; do
    name=followers-$layout
    "$SPILLWAY" define "$db" "$name" --layout $layout --id-field . --unique --threshold 4 --page 3 \
        --collection "c-$layout" --page-collection "p-$layout" >out || fail "define $layout"
    says 0 0..1 append "$db" "$name" alice --if-absent '"bob"' '"carol"'
    says 0 2 append "$db" "$name" alice --if-absent '"bob"' '"dan"' '"dan"'
    grep -q 'had 2 of 3 elements already' err || fail "duplicates are not reported: $(cat err)"
    says 0 none append "$db" "$name" alice --quiet '"carol"'
    says 0 '{"first":-1,"count":1,"repeated":false,"duplicates":1}' \
        append "$db" "$name" alice --json --quiet '"carol"'
    seq 1 30 | "$SPILLWAY" append "$db" "$name" alice - >out || fail "append numbers"
    says 0 $'0 "bob"\n3 1\n32 30' contains "$db" "$name" alice '"bob"' 1 30
    says 1 $'absent "eve"\n4 2.0' contains "$db" "$name" alice '"eve"' '{"$numberDouble": "2.0"}'
    says 1 'absent 1' contains "$db" "$name" nobody 1
    says 0 4 remove "$db" "$name" alice --id 2
    says 3 '' remove "$db" "$name" alice --id 2
    says 1 '{"id":2,"present":false,"seq":-1}' contains "$db" "$name" alice --json 2
    says 0 33 append "$db" "$name" alice --if-absent 2
    says 2 '' append "$db" "$name" alice '{"$undefined": true}' --if-absent
    grep -q 'cannot be undefined' err || fail "an id that is undefined: $(cat err)"
    says 0 34..35 append "$db" "$name" alice --if-absent null '[1, 2]'
    says 0 'none' append "$db" "$name" alice --quiet null '[1, 2]'
    says 1 $'34 null\n35 [ 1, 2 ]\nabsent [ 1 ]' contains "$db" "$name" alice null '[1, 2]' '[1]'
    "$SPILLWAY" verify "$db" "$name" >out || fail "verify $name: $(cat out)"
done

# A definition without --unique, and layouts that cannot have it.
"$SPILLWAY" define "$db" plain --layout outlier --collection plain --page-collection plainPages >out || fail "define plain"
says 2 '' append "$db" plain alice --if-absent 1
grep -q -- '--unique' err || fail "--if-absent without --unique: $(cat err)"
says 2 '' contains "$db" plain alice 1
says 2 '' define "$db" oldest --layout outlier --keep oldest --id-field . --unique --collection o --page-collection op
grep -q "that keeps the oldest cannot" err || fail "--unique of keep oldest: $(cat err)"
says 2 '' define "$db" ids --layout outlier --unique --collection i --page-collection ip
grep -q 'needs an idField' err || fail "--unique without ids: $(cat err)"
"$SPILLWAY" append "$db" plain alice 1 1 >out || fail "append plain"
says 4 '' define "$db" plain --id-field . --unique

# An import into a set: more elements than a page has, one of them twice. An export cannot keep its numbers.
"$SPILLWAY" define "$db" tags --layout outlier --id-field . --unique --collection t --page-collection tp \
    --threshold 3 --page 2 >out || fail "define tags"
printf '{"_id":"x","tags":["a","b","c","d","a","e","f","g"]}\n' >tags.ndjson
"$SPILLWAY" import "$db" tags tags.ndjson --elements tags --quiet >out 2>err || fail "import: $(cat err)"
grep -q '8 elements of 1 document imported, 1 of them left out' out || fail "the summary: $(cat out)"
"$SPILLWAY" count "$db" tags x | grep -q '"count":7,' || fail "the set has $("$SPILLWAY" count "$db" tags x)"
printf '{"owner":"x","seq":9,"element":"a"}\n{"owner":"x","seq":10,"element":"z"}\n' >export.ndjson
"$SPILLWAY" import "$db" tags export.ndjson >out 2>err
[ $? = 4 ] || fail "an export with numbers: $(cat out err)"
grep -q -- '--new-numbers' err || fail "the message: $(cat err)"
"$SPILLWAY" import "$db" tags export.ndjson --new-numbers --quiet >out 2>err || fail "new numbers: $(cat err)"
says 0 $'0 "a"\n7 "z"' contains "$db" tags x '"a"' '"z"'
