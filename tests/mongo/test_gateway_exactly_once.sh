#!/usr/bin/env bash
# No push through the gateway is applied twice, although connections are cut and gateways are killed;
# the histories of 8 clients through 2 gateways are linearizable. The checker must refuse the history of
# arrays that two gateways do not keep exact.
# shellcheck disable=SC1091,SC2154 # own_server.sh is not followed
source "$(dirname "$0")/own_server.sh"

python=$(python_with_pymongo) || exit $?
if [ "${SPILLWAY_LONG:-}" = 1 ]; then # the server is killed: use one of its own
    start_server
    SPILLWAY_TEST_URI=$(<server.uri)
    export SPILLWAY_TEST_URI
    export SERVER=$server
fi
mkdir histories
PYTHONDONTWRITEBYTECODE=1 "$python" "$tests/mongo/gateway_exactly_once.py" "$work/histories" ||
    fail "see above"
for scenario in histories/*; do
    code=0
    "$tests/mongo/linearizable/run" "$scenario"/*.log >checked 2>&1 || code=$?
    cat checked
    case ${scenario##*/}:$code in
    naive:1) ;;
    naive:*) fail "the checker does not refuse doubled elements (exit code $code)" ;;
    *:0) ;;
    *) fail "${scenario##*/}: the history is not linearizable (exit code $code)" ;;
    esac
done
