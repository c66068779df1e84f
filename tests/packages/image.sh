#!/usr/bin/env bash
# The OCI image leads from its archive to a first answer, as a user without rights, and its gateway lets a
# driver push past 16 MB. SPILLWAY_TEST_URI is a server. crun runs the image; if the kernel refuses that, the
# test says why, and runs the image's files in a chroot.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
: "${SPILLWAY_TEST_URI:?must be a server: run this under tools/test-server run}"

archive=$(echo "$SPILLWAY_DIST"/spillway-"$version"-oci-*.tar)
bundle=$work/bundle
root=$bundle/rootfs
user=10001:10001
gateway=spillway-packages-$$

# ---- ways to run it ------------------------------------------------------------------------------

# crun wants the second version of control groups. A machine with both versions has it in a mount of ours.
own_groups() {
    # shellcheck disable=SC2016 # bash expands it
    unshare --mount bash -c 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"' own_groups "$@"
}

# write_config ARGUMENT...: the container's configuration, for a run with these arguments (lines): no
# rights, no network of its own, a root that cannot be written, and /data.
write_config() {
    local words
    words=$(printf '%s\n' "$@" | jq --raw-input . | jq --slurp .)
    jq --argjson words "$words" '.process.args = ["/usr/bin/spillway"] + $words
        | .process.terminal = false
        | .process.noNewPrivileges = true
        | .root.readonly = true
        | del(.process.capabilities, .linux.resources)
        | .linux.namespaces |= map(select(.type != "network"))
        | .mounts |= map(select(.destination != "/data"))
        | .mounts += [{destination: "/data", type: "bind", source: "'"$work"'/data", options: ["bind", "rw"]},
            {destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev"]}]' \
        "$work/config.json" >"$bundle/config.json"
}

with_crun() {
    write_config "$@"
    crun --root "$work/crun" --cgroup-manager=disabled run --bundle "$bundle" "${name:-$gateway-once}"
}

with_own_groups() {
    write_config "$@"
    own_groups crun --root "$work/crun" --cgroup-manager=disabled run --bundle "$bundle" \
        "${name:-$gateway-once}"
}

with_chroot() {
    IN_ROOT_USER=$user "$packages/in_root" "$root" sh -euc 'cd /data && exec /usr/bin/spillway "$@"' \
        spillway "$@"
}

# choose_way: set `way` to the first that works.
choose_way() {
    for way in with_crun with_own_groups; do
        if $way --version >"$work/version" 2>"$work/refusal"; then
            echo "crun runs the image (${way//_/ })"
            return
        fi
        echo "crun refuses on this kernel ($(uname -r), ${way//_/ }): $(tr '\n' ' ' <"$work/refusal")"
    done
    way=with_chroot
    mount --bind "$work/data" "$root/data"
    at_end+=("umount '$root/data'")
    echo "so a chroot runs the image's files, as the image's user"
}

# ---- what the image is ---------------------------------------------------------------------------

mkdir "$work/layout" "$work/data"
chown $user "$work/data"
began=$SECONDS
tar --extract --file "$archive" --directory "$work/layout"
logged umoci unpack --image "$work/layout:$version" "$bundle"
cp "$bundle/config.json" "$work/config.json"
(cd "$work/layout/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done |
    sha256sum --check --quiet) || fail "a blob of the image does not have its checksum"

blob() {
    jq -r "$1" "$2" | sed "s,^sha256:,$work/layout/blobs/sha256/,"
}
manifest=$(blob '.manifests[0].digest' "$work/layout/index.json")
config=$(blob .config.digest "$manifest")
same "the image's user" "$user" "$(jq -r .config.User "$config")"
same "the image's health check" /usr/libexec/spillway/health \
    "$(jq -r '.config.Healthcheck.Test[1]' "$config")"
[ -x "$root/usr/libexec/spillway/health" ] || fail "the image has no health check"
same "the image's version" "$version" \
    "$(jq -r '.config.Labels["org.opencontainers.image.version"]' "$config")"
same "package sources that are not Debian's own" "" \
    "$(grep -v '^deb http://deb.debian.org/' "$root/etc/apt/sources.list" || true)"

# ---- the first answer ----------------------------------------------------------------------------

choose_way
same "the version" "spillway $version" "$($way --version)"
logged $way define feeds feed --preset feed-recent
logged $way append feeds feed ada '{"n": 1}'
logged $way append feeds feed ada '{"n": 2}'
same "the newest element" '1	{ "n" : 2 }' "$($way read feeds feed ada --limit 1 2>/dev/null)"
echo "from the image's archive to the first answer: $((SECONDS - began)) s"
same "the owner of the store" "$user" "$(stat --format %u:%g "$work/data/feeds")"

# ---- the gateway ---------------------------------------------------------------------------------

free_port() {
    local port
    while port=$((12000 + RANDOM % 7000)) && (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

# health PORT: run the health check in the container of the gateway.
health() {
    local check=(/usr/libexec/spillway/health) process
    case "$way" in
    with_crun) crun --root "$work/crun" exec --env "SPILLWAY_METRICS_PORT=$1" "$gateway" "${check[@]}" ;;
    with_own_groups)
        own_groups crun --root "$work/crun" exec --env "SPILLWAY_METRICS_PORT=$1" "$gateway" "${check[@]}"
        ;;
    with_chroot)
        process=$(pgrep --newest --full -- "--listen 127.0.0.1:$port ")
        nsenter --target "$process" --pid --mount --root --wd env "SPILLWAY_METRICS_PORT=$1" "${check[@]}"
        ;;
    esac
}

database=packages_image_$$
logged $way define "${SPILLWAY_TEST_URI%/}/$database" posts.comments --preset gateway \
    --collection posts --array comments
port=$(free_port)
metrics_port=$(free_port)
printf '%s' "${SPILLWAY_TEST_URI%/}/$database" >"$work/data/uri"
chown $user "$work/data/uri"
name=$gateway $way serve @/data/uri --listen "127.0.0.1:$port" --metrics "$metrics_port" \
    >"$work/gateway.log" 2>&1 &
serving=$!
at_end+=("pkill --full -- '--listen 127.0.0.1:$port '" wait)
deadline=$((SECONDS + 60))
while [ $SECONDS -lt $deadline ]; do
    if health "$metrics_port" >"$work/health" 2>&1; then
        break
    fi
    kill -0 $serving 2>/dev/null || fail "the gateway ended: $(tail -n 5 "$work/gateway.log")"
    sleep 0.2
done
health "$metrics_port" || fail "the gateway does not get healthy: $(cat "$work/health" "$work/gateway.log")"

/usr/bin/python3 - "$port" "$database" <<'CODE'
import sys

import pymongo

posts = pymongo.MongoClient("127.0.0.1", int(sys.argv[1]))[sys.argv[2]].posts
for number in range(20):
    posts.update_one({"_id": "launch"}, {"$push": {"comments": {"n": number, "text": "x" * 1_000_000}}},
                     upsert=True)
comments = posts.find_one({"_id": "launch"})["comments"]
assert [comment["n"] for comment in comments] == list(range(20)), len(comments)
CODE
echo "a driver pushed 20 MB to one array through the gateway of the image, and read them"

if health "$(free_port)" >"$work/health" 2>&1; then
    fail "the health check passes although nothing answers"
fi
grep -q "start it with --metrics" "$work/health" || fail "the health check: $(cat "$work/health")"
echo "the health check passes, and fails if nothing answers"
