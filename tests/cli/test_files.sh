#!/usr/bin/env bash
# The files that the program creates: their permissions, and that they never replace other files.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"

# ---- permissions ---------------------------------------------------------------------------------

# modes FOLDER: print the permissions of the folder and its contents, each once.
modes() {
    find "$1" -printf '%m\n' | sort -u | tr '\n' ' '
}

for usual in 000 022 0177; do
    umask "$usual"
    rm -rf db copy copy2 plots
    expect 0 define db feed --preset feed-recent --quiet
    expect 0 append db feed ada 1
    [ "$(modes db)" = "600 700 " ] || fail "umask $usual: the store has $(modes db)"
    expect 0 backup db copy --quiet
    [ "$(modes copy)" = "600 700 " ] || fail "umask $usual: the backup has $(modes copy)"
    expect 0 copy db copy2 --quiet
    [ "$(modes copy2)" = "600 700 " ] || fail "umask $usual: the copy has $(modes copy2)"
    rm -f ./*.html ./*.json
    echo '{"_id":1,"a":[1,2,3]}' >documents.ndjson
    expect 0 scan documents.ndjson --json --quiet
    mv out scan.json
    expect 0 report scan.json -o report.html --quiet
    [ "$(modes report.html)" = "600 " ] || fail "umask $usual: the report has $(modes report.html)"
    expect 0 plan scan.json -o plan.json --quiet
    [ "$(modes plan.json)" = "600 " ] || fail "umask $usual: the plan has $(modes plan.json)"
done
umask 022

rm -rf db copy
expect 0 define db feed --preset feed-recent --quiet --mode 0640
[ "$(modes db)" = "640 750 " ] || fail "--mode 0640: the store has $(modes db)"
expect 0 append db feed ada 1
expect 0 append db feed ada 2
[ "$(modes db)" = "640 750 " ] || fail "the appends left $(modes db), not the store's 640"
mkdir -m 0755 empty
expect 0 define empty feed --preset feed-recent --quiet
expect 0 append empty feed ada 1
[ "$(modes empty)" = "600 755 " ] || fail "in an empty folder: the store has $(modes empty)"
expect 0 backup db copy --quiet --mode 0644
stat -c %a copy copy/CURRENT copy/SPILLWAY | tr '\n' ' ' >got
is got "755 644 644 "
expect 0 report scan.json -o other.html --quiet --mode 640
[ "$(modes other.html)" = "640 " ] || fail "--mode 640: the report has $(modes other.html)"
chmod 0604 other.html
expect 0 report scan.json -o other.html --quiet
[ "$(modes other.html)" = "604 " ] || fail "a replaced report gets $(modes other.html)"
for mode in 0666 0400 0700 600x 8 '' 04600; do
    expect 2 define other feed --preset feed-recent --mode "$mode"
    has err "--mode '$mode'"
done

# ---- links and pipes -----------------------------------------------------------------------------

# No command may write through a name in the folder, or wait for it.
echo secret >victim
cp victim untouched
expect 0 define sound feed --preset feed-recent --quiet
for name in SPILLWAY CURRENT LOCK LOG MANIFEST-000001 000004.log IDENTITY OPTIONS-000007; do
    for kind in link pipe broken; do
        for start in empty store; do
            rm -rf odd nowhere
            case $start in
            empty) mkdir odd ;;
            store) cp -r sound odd ;;
            esac
            rm -f "odd/$name"
            case $kind in
            link) ln -s ../victim "odd/$name" ;;
            pipe) mkfifo "odd/$name" ;;
            broken) ln -s ../nowhere "odd/$name" ;;
            esac
            for command in "define odd feed --preset feed" "append odd feed ada 1" "verify odd" \
                "count odd feed ada" "backup odd odd-copy"; do
                # shellcheck disable=SC2086 # its words
                timeout 20 "$SPILLWAY" $command >out 2>err
                got=$?
                [ "$got" = 3 ] || fail "$start with $kind $name: $command ended with $got: $(cat err)"
                has err "$name: is not a regular file"
            done
            [ ! -e nowhere ] || fail "$start: a file was made through the link $name"
            [ ! -e odd-copy ] || fail "$start with $kind $name: a backup was made"
            cmp -s victim untouched || fail "$start: the target of the link $name was overwritten"
        done
    done
    [ "$name" = SPILLWAY ] || [ "$name" = CURRENT ] || [ "${SPILLWAY_LONG:-}" = 1 ] || break
done
mkdir hard
ln victim hard/SPILLWAY
expect 3 define hard feed --preset feed
has err "is not the file that marks a store"
cmp -s victim untouched || fail "a hard link named SPILLWAY was overwritten"

# Other bytes in a store's own file: verify finds them, a writer leaves them alone and says what to do.
expect 0 define overwritten feed --preset feed --quiet
expect 0 append overwritten feed ada 1
echo xx >overwritten/SPILLWAY
expect 1 verify overwritten
has out "overwritten/SPILLWAY: does not begin with"
expect 3 append overwritten feed ada 2
has err "does not begin with \"A Spillway store.\", and is left alone"
has err "truncate -s 0"
[ "$(cat overwritten/SPILLWAY)" = xx ] || fail "SPILLWAY was overwritten"
truncate -s 0 overwritten/SPILLWAY
expect 0 append overwritten feed ada 2
expect 0 verify overwritten
expect 0 count overwritten feed ada
has out 2

# A killed backup leaves a folder with a predictable name. If a link has that name, do not follow it.
mkdir precious
echo keep >precious/file
bash -c 'ln -s "$PWD/precious" "here.partial-$$"; exec "$SPILLWAY" backup sound here' >out 2>err
[ -e precious/file ] || fail "backup deleted files through a link"

# ---- a place inside a store ----------------------------------------------------------------------

ln -s sound alias
mkdir beside
before=$(ls sound)
for place in sound/copy ./beside/../sound/copy alias/copy "$PWD/sound/copy" sound/copy/ sound//copy; do
    expect 4 backup sound "$place"
    has err "lies in the store"
    expect 4 define "$place" feed --preset feed
    expect 4 copy sound "$place"
done
(cd sound && "$SPILLWAY" backup . copy) >out 2>err && fail "a backup into the folder it runs in"
has err "lies in the store"
expect 4 backup sound sound
for place in sound/report.html alias/CURRENT sound/SPILLWAY; do
    expect 4 report scan.json -o "$place"
    expect 4 plan scan.json -o "$place"
done
ln -s sound/CURRENT link.html
expect 4 report scan.json -o link.html
[ "$(ls sound)" = "$before" ] || fail "the store has other files: $(ls sound)"
clean sound
expect 0 backup sound beside/copy
clean beside/copy

# ---- @FOLDER -------------------------------------------------------------------------------------

mkdir folder
expect 2 verify @folder
has err "folder is a folder"
