#!/usr/bin/env bash
# report: one page with problems, what to do, and plots. Names are escaped, and the file is written as a
# whole or not at all.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/report_pages.sh"

limits=(--max-elements 1500 --document-limit 900KB --threads 1)
make_documents
expect 0 report feeds.ndjson "${limits[@]}" --quiet -o report.html
plain_numbers report.html
[ -s out ] && fail "it also printed: $(head -c 200 out)"
python3 - report.html feeds <<'END' || fail "the page"
import html.parser, re, sys
text = open(sys.argv[1], encoding="utf-8").read()

class Page(html.parser.HTMLParser):
    """Tags are closed in order; collects them, their attributes and the text."""
    VOID = {"meta", "br"}
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
    def handle_data(self, data):
        self.text += data

page = Page()
page.feed(text)
assert not page.open, page.open
assert not {"script", "link", "img", "iframe", "object", "b>"} & set(page.tags), set(page.tags)
for name, value in page.attributes:
    assert name not in ("src", "xlink:href", "style") and not name.startswith("on"), name
    assert name != "href" or value.startswith("#"), value
ids = [value for name, value in page.attributes if name == "id"]
assert len(ids) == len(set(ids)), ids
for target in (value[1:] for name, value in page.attributes if name == "href"):
    assert target in ids, target
assert not re.findall(r"https?://[^\"' ]*", text)
assert "url(" not in text and "@import" not in text
for words in ("unbounded-array", "AVOID_UNBOUNDED_ARRAY", "What to do", "Layout outlier", "80 %",
              "elements in an array", "size of a document", "share of all bytes", "forecast",
              "threshold: 1\u00a0500", "about 200 KiB", "limit: 879 KiB", "document full", "feeds: posts",
              "spillway plan feeds.ndjson --max-elements 1500 --document-limit 900000 --output plan.json", "spillway migrate @server.uri plan.json"):
    assert words in page.text, words
assert "<script>document.title='ran'</script>" in page.text  # as text
assert "\\u202E" in page.text and "\u202e" not in text and "\x07" not in text
assert page.tags.count("svg") == 4, page.tags.count("svg")  # lengths, growth, sizes, shares
assert page.tags.count("article") == 1, "one card for each problem"
assert text.index("unbounded-array (") < text.index("paid-by-array (") < text.index("</article>")
assert text.index("spillway plan") < text.index("Layout outlier"), "the next command comes first"
assert "prefers-color-scheme:dark" in text and "nan" not in re.findall(r'points="([^"]*)"', text)
END
[ -e ran ] && fail "a name was run"

# A scan's JSON gives the same page, and so does output to stdout.
expect 0 scan feeds.ndjson "${limits[@]}" --quiet --json
mv out scan.json
expect 0 report scan.json
cmp out report.html || fail "another page from the scan's JSON"
expect 0 report - <scan.json
cmp out report.html || fail "another page from stdin"
"$SPILLWAY" scan feeds.ndjson "${limits[@]}" --quiet --json | "$SPILLWAY" report - -o piped.html ||
    fail "from a pipe"
cmp piped.html report.html || fail "another page from a pipe"
expect 3 report - </dev/null
has err 'stdin: '
expect 2 report - --max-elements 10 <scan.json
has err 'for a source on stdin give --format'
expect 0 report - --format ndjson --quiet "${limits[@]}" <feeds.ndjson
has out 'unbounded-array'
expect 2 report scan.json --max-elements 10
has err 'the result of a scan with its own options'

# Names of collections and fields are escaped too.
expect 0 report "<b>&amp;'.ndjson" --quiet --output=report.html
has report.html '&lt;b&gt;&amp;amp;&#39;'
has report.html 'pri\&quot;ces&lt;i&gt;'
has report.html 'unbounded-map'
has report.html 'keys in a map'

# No findings, and no collections.
grep '"feed1"' feeds.ndjson >one.ndjson
expect 0 report one.ndjson --quiet
has out 'None: no array'
has out 'elements in an array'
expect 3 report missing.ndjson -o new.html
[ -e new.html ] && fail "a page of nothing"
head -c 1000000 feeds.ndjson >cut.ndjson
expect 3 report cut.ndjson --quiet
has err '1 problem in the input'
has out '1 place in the input could not be read'

# The file is replaced as a whole and keeps its mode. If that fails, it is unchanged.
mkdir folder
ln -s ../real.html folder/link.html
echo old >real.html
chmod 640 real.html
expect 0 report scan.json -o folder/link.html
[ -L folder/link.html ] || fail "the link was replaced"
[ "$(stat -c %a real.html)" = 640 ] || fail "its mode is $(stat -c %a real.html)"
cmp real.html <("$SPILLWAY" report scan.json) || fail "another page in the file"
expect 3 report scan.json -o no/such/folder/report.html
has err no/such/folder/report.html
expect 3 report scan.json -o folder
if [ -e /dev/full ]; then
    expect 3 report scan.json -o /dev/full
fi

# Collections that are alike are one row and one card; the rest is sorted by bytes.
mkdir -p dump/shop
python3 - <<'END' || fail "making a dump"
import struct
def document(number, size):
    at = struct.pack("<q", 1704067200000 + number)
    body = (b"\x10_id\0" + struct.pack("<i", number) + b"\x09at\0" + at +
            b"\x02text\0" + struct.pack("<i", size + 1) + b"x" * size + b"\0")
    return struct.pack("<i", len(body) + 5) + body + b"\0"
for name, count, size in [(f"orders_c{i}", 3, 10) for i in range(30)] + [("large", 200, 300)]:
    with open(f"dump/shop/{name}.bson", "wb") as out:
        out.writelines(document(number, size) for number in range(count))
END
expect 0 report dump --collection-limit 20 --quiet -o tenants.html
python3 - <<'END' || fail "the page of many collections"
import re
text = open("tenants.html", encoding="utf-8").read()
table = text[text.index('id="collections"'):]
rows = re.findall(r"<tr><td>(.*?)</td>", table)
assert len(rows) == 2 and "large" in rows[0] and "(30 collections)" in rows[1], rows
assert "spillway consolidate @server.uri plan.json" in text
END

compgen -G '*.html.*' >/dev/null && fail "temporary files are left: $(ls)"
true

# An array that is most of the large documents is one problem with them. Large documents that no array explains are
# another one. A document over the bytes of the threshold has reached it, and an option's name does not wrap.
python3 - <<'END' || fail "making posts"
import json
with open("posts.ndjson", "w") as out:
    for n in range(60):
        count = {59: 7000, 58: 4000}.get(n, n)
        out.write(json.dumps({"_id": n, "posts": [{"at": {"$date": f"20{10 + i % 10}-01-01T00:00:00Z"}, "text": "x" * 60}
                                                  for i in range(count)]}) + "\n")
with open("files.ndjson", "w") as out:
    out.write(open("posts.ndjson").read() + json.dumps({"_id": "file", "text": "x" * 800000}) + "\n")
END
expect 0 report posts.ndjson --document-limit 700KB --quiet -o posts.html
[ "$(grep -c '<article' posts.html)" = 1 ] || fail "one array has $(grep -c '<article' posts.html) cards"
has posts.html '<li><b>1</b>critical problem<'
has posts.html 'larger than half of the limit of 684 KiB. This array is most of the largest.'
grep -q '>4[^<]*000</td>.*<td data-label="Threshold">200 KiB reached</td>' posts.html || fail "the threshold of 4000 elements"
has posts.html ' <span>--document-limit</span> 700000 <span>--output</span> plan.json'
has posts.html 'pre span{white-space:nowrap}'
expect 0 report files.ndjson --document-limit 700KB --quiet -o files.html
[ "$(grep -c '<article' files.html)" = 2 ] || fail "a large text has no card"
has files.html 'Find out which array or map is most of these documents'
