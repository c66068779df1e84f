#!/usr/bin/env bash
# The gateway's status page, after traffic of pymongo; if there is a browser, also its layout.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../cli/lib.sh"

needs SPILLWAY_TEST_URI
python=$(python_with_pymongo) || exit $?
new_database "$SPILLWAY_TEST_URI"
STORE=$uri PYTHONDONTWRITEBYTECODE=1 "$python" "$here/gateway_status.py" || fail "see above"

command -v chromium >/dev/null || skip "the browser's part: chromium is not installed"

# Make a page that runs a script to report its layout and what it loads. A window has a minimum width,
# so the body is made narrower.
for width in 1440 390; do
    python3 - "$width" <<'END' || fail "making a page that reports"
import sys
script = """<style>body{margin:0;width:WIDTHpx;max-width:none}</style><script>
const wrong = [...document.querySelectorAll("h1,h2,p,li,table,td,th,code,footer")].filter(part =>
    part.getBoundingClientRect().right > WIDTH + 1 ||
    part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0).map(part => part.textContent);
const report = document.createElement("pre");
report.textContent = "REPORT " + JSON.stringify({scroll: document.body.scrollWidth, wrong: wrong,
    loaded: performance.getEntriesByType("resource").length,
    rows: document.querySelectorAll("tbody tr").length}) + " END";
document.body.append(report);
</script>""".replace("WIDTH", sys.argv[1])
page = open("status.html", encoding="utf-8").read()
open("reporting.html", "w", encoding="utf-8").write(page.replace("</body>", script + "</body>"))
END
    timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --hide-scrollbars --no-first-run --disable-background-networking --disable-sync \
        --disable-component-update --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$work/profile" --window-size="$width,1600" --dump-dom \
        "file://$PWD/reporting.html" >dom 2>browser.log || fail "the browser: $(tail -3 browser.log)"
    python3 - "$width" <<'END' || fail "at a width of $width"
import html, json, re, sys
report = json.loads(html.unescape(re.search(r"REPORT (\{.*?\}) END</pre>", open("dom").read(), re.S)[1]))
print(report)
assert report["scroll"] <= int(sys.argv[1]), "the page must be scrolled sideways"
assert report["wrong"] == [] and report["loaded"] == 0 and report["rows"] >= 4 + 3 + 10
END
done
