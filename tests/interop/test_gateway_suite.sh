#!/usr/bin/env bash
# Run pymongo's own tests on the server and through the gateway, one after the other, because they use
# the same databases. Each test that passes on the server must pass through the gateway. (FerretDB replies
# to commands that ask for no reply, which fails a test by chance; the gateway drops these replies.) With
# SPILLWAY_LONG=1 also the many tests of reads, writes and retries.
# shellcheck disable=SC1091,SC2154 # lib.sh and gateway.sh are not followed
source "$(dirname "$0")/lib.sh"
source "$here/gateway.sh"

modules=(test_command_monitoring test_sessions_unified test_versioned_api_integration)
[ "${SPILLWAY_LONG:-}" != 1 ] ||
    modules+=(test_crud_unified test_retryable_reads test_retryable_reads_unified)

use_pymongo
folder=$(fetched_pymongo_source) || skip "pymongo's source is not cached and cannot be fetched"
new_database
start_gateway
direct=${uri#*//}
direct=${direct%%/*}
through=127.0.0.1:$gateway_port
for address in "$direct" "$through"; do
    python3 "$here/run_pymongo_suite.py" "$folder" "${address%:*}" "${address##*:}" \
        "${modules[@]}" >"results.$address" 2>"log.$address" || {
        tail -5 "log.$address" >&2
        fail "pymongo's tests do not run on $address"
    }
done
grep -q '^passed' "results.$direct" || fail "no test passes on the server itself"
diff <(cut -d' ' -f2 "results.$direct" | sort) <(cut -d' ' -f2 "results.$through" | sort) ||
    fail "other tests run through the gateway"
worse=$(comm -23 <(grep '^passed' "results.$direct" | sort) <(grep '^passed' "results.$through" | sort))
[ -z "$worse" ] || fail "these tests pass on the server and not through the gateway: $worse"
echo "$(grep -c '^passed' "results.$through") tests pass through the gateway"
