#!/usr/bin/env bash
# report in a browser, in the widths of a desktop and of a phone, light and dark: the page is not empty,
# nothing is cut off or overlaps, nothing is loaded, and a phone folds plots and tables.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/report_pages.sh"
command -v chromium >/dev/null || skip "chromium is not installed"

# browse WIDTH ARGUMENT...: run a browser without a window and without questions, until it ends.
browse() {
    local width=$1
    shift
    timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --hide-scrollbars --no-first-run --disable-background-networking --disable-sync \
        --disable-component-update --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$work/profile" --window-size="$width,2400" "$@" 2>>browser.log
}

make_documents
expect 0 report feeds.ndjson --max-elements 1500 --document-limit 900KB --quiet -o report.html

# Make a page that runs a script to report its layout and what it loads. It is the report without the
# policy that forbids scripts and loading. A window has a minimum width, so the body is made narrower.
make_reporting_page() {
    python3 - "$1" <<'END' || fail "making a page that reports"
import sys
page = open("report.html", encoding="utf-8").read()
policy = page.index('<meta http-equiv="Content-Security-Policy"')
page = page[:policy] + page[page.index(">", policy) + 1:]
script = """<style>body{margin:0;width:WIDTHpx;max-width:none}</style><script>
const wrong = [];
// First as a reader gets the page, then with everything opened.
const height = document.body.scrollHeight;
const hidden = [...document.querySelectorAll(".fold svg")].filter(svg =>
    !svg.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})).length;
for (const part of document.querySelectorAll("details")) part.open = true;
const opened = document.body.scrollHeight;
for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent.trim());
    const boxes = texts.map(text => text.getBoundingClientRect());
    boxes.forEach((box, i) => {
        const name = svg.getAttribute("aria-label") + ": " + texts[i].textContent;
        if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.height < 6 ||
            box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
            wrong.push("cut off: " + name);
        for (let j = 0; j < i; j++)
            if (box.left < boxes[j].right - 1 && boxes[j].left < box.right - 1 &&
                box.top < boxes[j].bottom - 3 && boxes[j].top < box.bottom - 3)
                wrong.push(name + " on " + texts[j].textContent);
    });
}
for (const part of document.querySelectorAll("h1,h2,h3,p,li,pre,figure,.tiles,table,td,td *"))
    if (part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0 ||
        part.getBoundingClientRect().right > WIDTH + 1)
        wrong.push("too wide: " + part.textContent.slice(0, 40));
// A phone shows no columns: each figure is on its own line, after its label.
const narrow = matchMedia("(max-width: 44rem)").matches;
for (const cell of document.querySelectorAll("td[data-label]")) {
    const label = getComputedStyle(cell, "::before").content;
    if (narrow ? label !== JSON.stringify(cell.dataset.label) : label !== "none")
        wrong.push("the label of " + cell.textContent + " is " + label);
}
const report = document.createElement("pre");
report.textContent = "REPORT " + JSON.stringify({
    scroll: document.body.scrollWidth, wrong: wrong,
    loaded: performance.getEntriesByType("resource").map(entry => entry.name),
    narrow: narrow, height: height, opened: opened, hidden: hidden,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
    title: document.title, pictures: document.querySelectorAll("svg").length}) + " END";
document.body.append(report);
</script>""".replace("WIDTH", sys.argv[1])
open("reporting.html", "w", encoding="utf-8").write(page.replace("</body>", script + "</body>"))
END
}

for look in "1440 1" "390 1" "1440 0" "390 0"; do # 0 is dark
    read -r width scheme <<<"$look"
    make_reporting_page "$width"
    browse "$width" --blink-settings=preferredColorScheme="$scheme" --dump-dom \
        "file://$PWD/reporting.html" >dom || fail "the browser: $(tail -3 browser.log)"
    browse "$width" --blink-settings=preferredColorScheme="$scheme" --screenshot="$PWD/$width.png" \
        "file://$PWD/report.html" >/dev/null || fail "the browser: $(tail -3 browser.log)"
    [ -z "${SPILLWAY_SCREENSHOTS:-}" ] || cp "$width.png" "$SPILLWAY_SCREENSHOTS/report-$width-$scheme.png"
    python3 - "$width" "$scheme" <<'END' || fail "at a width of $width, scheme $scheme"
import html, json, re, struct, sys, zlib
width, dark = int(sys.argv[1]), sys.argv[2] == "0"
report = json.loads(html.unescape(re.search(r"REPORT (\{.*?\}) END</pre>", open("dom").read(), re.S)[1]))
print(report)
assert report["narrow"] == (width < 704)
assert report["scroll"] <= width, "the page must be scrolled sideways"
assert report["wrong"] == [] and report["loaded"] == [] and report["pictures"] == 4
assert report["title"].startswith("Arrays that grow")
assert report["dark"] == dark
brightness = {name: sum(map(int, re.findall(r"\d+", report[name]))) for name in ("paper", "ink")}
assert (brightness["paper"] < 150 and brightness["ink"] > 600) if dark else brightness["paper"] == 765
if report["narrow"]: # a phone folds the plots; the page is much shorter than with everything opened
    assert report["hidden"] == 4 and report["height"] < report["opened"] / 1.5, report
else:
    assert report["hidden"] == 0 and report["height"] == report["opened"], report

# After PNG's filter, a line equal to the line before has only zeros. Few lines may be like that.
png = open(f"{width}.png", "rb").read()
at, data = 8, b""
while at < len(png):
    size, kind = struct.unpack(">I4s", png[at:at + 8])
    if kind == b"IHDR":
        wide, high, depth, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
    if kind == b"IDAT":
        data += png[at + 8:at + 8 + size]
    at += size + 12
assert (wide, high, depth) == (width, 2400, 8) and colour in (2, 6)
row = 1 + wide * (3 if colour == 2 else 4)
lines = zlib.decompress(data)
busy = sum(1 for y in range(high) if lines[y * row + 1:(y + 1) * row].strip(b"\0"))
assert busy > high / 4, f"{busy} of {high} lines have something"
END
done
