#!/usr/bin/env bash
# report: one page with findings, recommendations and plots. Names are escaped, the file is written as a
# whole or not at all, and failures of gnuplot are reported.
# shellcheck disable=SC1091,SC2154 # lib.sh is not followed
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/report_pages.sh"
command -v gnuplot >/dev/null || skip "gnuplot is not installed"

limits=(--max-elements 1500 --document-limit 900KB --threads 1)
make_documents
expect 0 report feeds.ndjson "${limits[@]}" --quiet -o report.html
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
assert set(re.findall(r"https?://[^\"' ]*", text)) == {"http://www.w3.org/2000/svg"}
assert "url(" not in text and "@import" not in text
for words in ("unbounded-array", "AVOID_UNBOUNDED_ARRAY", "What to do", "Layout outlier", "80 %",
              "elements in an array", "size of a document", "share of all bytes", "forecast",
              "threshold 1\u00a0500", "the document is full", "feeds: posts"):
    assert words in page.text, words
assert "<script>document.title='ran'</script>" in page.text  # as text
assert "\\u202E" in page.text and "\u202e" not in text and "\x07" not in text
assert page.tags.count("svg") == 4, page.tags.count("svg")  # lengths, growth, sizes, shares
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

# gnuplot is missing, fails, prints nothing, or ends early.
echo old >kept.html
mkdir empty failing silent early
"$SPILLWAY" report scan.json -o kept.html >out 2>err
PATH=$PWD/empty "$SPILLWAY" report scan.json -o kept.html >out 2>err
[ $? = 3 ] || fail "without gnuplot the report ended with another code"
has err 'apt install gnuplot-nox'
printf '#!/bin/sh\ncat >/dev/null\necho "line 3: no such thing" >&2\nexit 1\n' >failing/gnuplot
printf '#!/bin/sh\ncat >/dev/null\n' >silent/gnuplot
printf '#!/bin/sh\nexit 2\n' >early/gnuplot
chmod +x ./*/gnuplot
before=$(sha256sum <kept.html)
for kind in failing silent early; do
    PATH=$PWD/$kind:$PATH expect 3 report scan.json -o kept.html
    has err gnuplot
done
PATH=$PWD/failing:$PATH expect 3 report scan.json -o kept.html
has err 'gnuplot failed: line 3: no such thing'
[ "$(sha256sum <kept.html)" = "$before" ] || fail "the page changed although the report failed"
compgen -G '*.html.*' >/dev/null && fail "temporary files are left: $(ls)"
true
