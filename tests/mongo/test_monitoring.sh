#!/usr/bin/env bash
# The alerts pass their tests. Alerts and dashboard name only metrics that scrapes of a real gateway, sweep
# and migration have. The documentation names each metric of these scrapes.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

monitoring=$here/../../monitoring
command -v promtool >/dev/null || skip "promtool is not installed (Debian: prometheus)"
promtool check config "$monitoring/prometheus.yml" >out 2>&1 || fail "prometheus.yml: $(cat out)"
promtool test rules "$monitoring/alerts_test.yml" >out 2>&1 || fail "alerts: $(cat out)"
while read -r alert; do
    grep -q "alertname: $alert\$" "$monitoring/alerts_test.yml" || fail "no test makes $alert fire"
done < <(sed -n 's/.*- alert: //p' "$monitoring/alerts.yml")
while read -r page; do
    [ -f "$here/../../$page" ] || fail "an alert names $page, which does not exist"
done < <(sed -n 's/.*runbook: //p' "$monitoring/alerts.yml")

needs SPILLWAY_TEST_URI
python=$(python_with_pymongo) || exit $?
new_database "$SPILLWAY_TEST_URI"
STORE=$uri PYTHONDONTWRITEBYTECODE=1 "$python" "$here/monitoring.py" "$monitoring" "$here/../../docs/how-to" \
    || fail "see above"
