"""The status page and the metrics after real traffic: their figures, and no data of users."""

import json
import os
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

import bson
import pymongo
from bson.raw_bson import RawBSONDocument

from gateway_lib import Gateway, run

STORE = os.environ["STORE"]
SECRET = "ada-lovelace"
HOSTILE = "<script>alert('1')</script>&\u202e" + "w" * 200
BUSY = 6  # pushes to the owner that has the most
DATABASE = pymongo.uri_parser.parse_uri(STORE)["database"]


def fetch(port, path, method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.headers, answer.read().decode()


def start(*options):
    gateway = Gateway(STORE, "--metrics", "0", *options)
    return gateway, gateway.metrics_port()


def make_traffic(gateway):
    """11 owners with pages, one of them busy; refusals; other commands."""
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        posts = client[DATABASE].posts
        for owner in [SECRET, HOSTILE] + [f"owner-{i}" for i in range(9)]:
            for _ in range(2 if owner != SECRET else BUSY):
                posts.update_one({"_id": owner}, {"$push": {"f": {"$each": [{"text": "private"}] * 4}}},
                                 upsert=True)
        assert len(posts.find_one({"_id": SECRET})["f"]) % (4 * BUSY) == 0
        for _ in range(3):
            refused(posts.update_one, {"_id": SECRET}, {"$bit": {"f": {"and": 1}}})
        refused(posts.find_one, {"_id": SECRET}, {"f": {"$elemMatch": {"text": "private"}}})
        refused(posts.update_one, {"_id": SECRET, "spill": "private"}, {"$set": {"a": 1}})
        refused(posts.aggregate, [{"$unwind": "$f"}])
        refused(posts.create_index, "at", expireAfterSeconds=3600, code=67)
        client[DATABASE].other.create_index("at", expireAfterSeconds=3600)
        for _ in range(2):  # errors of the server, for another reason than the gateway's
            try:
                posts.update_one({"_id": SECRET}, {"$set": {"a.b": "private"}, "$unset": {"a": 1}})
            except pymongo.errors.OperationFailure as error:
                assert "spillway" not in str(error), error
                continue
            raise AssertionError("the server has accepted a conflict")
        client[DATABASE].command("ping")


def refused(call, *arguments, code=115, **options):
    try:
        call(*arguments, **options)
    except pymongo.errors.OperationFailure as error:
        assert error.code == code, error
        return
    raise AssertionError(f"{arguments} is not refused")


def rows_of(page, title):
    """The cells of the table that follows the title."""
    table = page.split(f"<h2>{title}</h2>")[1].split("<h2>")[0]
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row)]
            for row in re.findall(r"<tr>(<td.*?)</tr>", table)]


def figure(metrics, name):
    return float(re.search(rf"^{re.escape(name)} (\S+)$", metrics, re.M)[1])


def the_documentation_has_every_metric(metrics):
    """Each metric of a scrape is on a page for operators."""
    folder = pathlib.Path(__file__).parents[2] / "docs" / "how-to"
    pages = "".join((folder / name).read_text() for name in ("monitor.md", "run-gateway.md"))
    names = re.findall(r"^# TYPE (\S+)", metrics, re.M)
    assert len(names) > 15, names
    missing = [name for name in names if not re.search(rf"\b{name}\b", pages)]
    assert not missing, missing


def an_idle_gateway_has_a_page():
    gateway, port = start()
    headers, page = fetch(port, "/")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'"), headers
    assert "Nothing was refused" in page and "No command has used a managed array" in page
    assert fetch(port, "/", "HEAD")[1] == ""
    try:
        fetch(port, "/favicon.ico")
        raise AssertionError("another page")
    except urllib.error.HTTPError as error:
        assert error.code == 404
    gateway.stop()


def milliseconds(cell):
    number, unit = cell.split()
    return float(number) * {"ms": 1, "s": 1000}[unit]


def check_buckets(metrics, latencies):
    """The buckets are fine enough for quantiles, and the page shows those of the histogram."""
    found = re.findall(r'^spillway_gateway_translated_seconds_bucket{class="write",le="(.*)"} (\d+)$', metrics, re.M)
    bounds = [float(bound) for bound, _ in found]
    counts = [int(count) for _, count in found]
    assert bounds[0] == 50e-6 and bounds[-2:] == [10, float("inf")], bounds
    assert all(low < high <= 1.7 * low for low, high in zip(bounds[:-2], bounds[1:-1], strict=True)), bounds
    coarse = [100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 1, 10]
    assert set(coarse) <= set(bounds), "queries for one of the coarse bounds find nothing"
    assert counts == sorted(counts) and counts[-1] > 0, counts
    for share, cell in zip((50, 95, 99), latencies["writes to served arrays"][2:], strict=True):
        least = next(bound for bound, count in zip(bounds, counts, strict=True) if count * 100 >= share * counts[-1])
        assert abs(milliseconds(cell) - least * 1000) <= 0.01 * milliseconds(cell), (share, cell, least)


def the_page_shows_what_happened():
    gateway, port = start()
    make_traffic(gateway)
    _, page = fetch(port, "/")
    _, metrics = fetch(port, "/metrics")
    refusals = rows_of(page, "Refusals by reason")
    assert refusals[0] == ["update", "$bit", "115", "3"], refusals
    assert ["find", "$elemMatch", "115", "1"] in refusals, refusals
    assert ["update", "the whole command, or the field spill", "115", "1"] in refusals, refusals
    assert ["aggregate", "a pipeline that uses the array", "115", "1"] in refusals, refusals
    assert ["createIndexes", "a unique, text, geospatial or TTL index", "67", "1"] in refusals, refusals
    assert len(refusals) == 5, refusals
    assert rows_of(page, "Errors by class") == [["invalid", "2"]], page
    assert figure(metrics, 'spillway_gateway_errors_total{class="invalid"}') == 2
    assert figure(metrics, 'spillway_gateway_errors_total{class="unavailable"}') == 0
    owners = rows_of(page, "Busiest owners")
    assert len(owners) == 10 and all(row[0] == "posts" for row in owners), owners
    assert all(re.fullmatch("[0-9a-f]{8}", row[1]) for row in owners), owners
    counts = [int(row[2]) for row in owners]
    assert counts == sorted(counts, reverse=True) and counts[0] > 2 * counts[1], owners
    latencies = {row[0]: row[1:] for row in rows_of(page, "Latency by class")}
    writes = int(latencies["writes to served arrays"][0])
    assert writes == 2 * 10 + BUSY + 5 + 2, latencies
    assert int(latencies["reads of served arrays"][0]) == 3, latencies
    assert int(latencies["relayed unchanged"][0]) >= 1, latencies
    assert all("ms" in cell or " s" in cell for cell in latencies["writes to served arrays"][1:])
    for pattern in ("adopted", "spills to pages"):
        assert int(re.search(rf"<b>(\d+)</b>[^<]*{pattern}", page)[1]) >= 11, page
    assert figure(metrics, "spillway_gateway_adoptions_total") == 11
    assert figure(metrics, "spillway_gateway_spills_total") >= 11
    assert figure(metrics, 'spillway_gateway_translated_seconds_count{class="write"}') == writes
    assert figure(metrics, 'spillway_gateway_relayed_seconds_count{class="relayed"}') >= 1
    assert figure(metrics, 'spillway_gateway_refusals_total{command="update",code="115",'
                           'operation="$bit"}') == 3
    log = gateway.log_text()
    assert log.count('"event" : "failed"') == 2 and '"class" : "invalid"' in log, log
    assert log.count('"event" : "refused"') == 7 and '"operation" : "$bit"' in log, log
    check_buckets(metrics, latencies)
    the_documentation_has_every_metric(metrics)
    for text in (page, metrics, log):
        for private in (SECRET, "private", "script>", "owner-1"):
            assert private not in text, private
    gateway.stop()


def messages_of_libraries_are_events_of_the_log():
    """libbson prints a message when the gateway copies an array whose first key is not 0."""
    gateway, _ = start()
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        posts = client[DATABASE].posts
        for _ in range(2):
            posts.update_one({"_id": "odd"}, {"$push": {"f": {"$each": [1, 2, 3, 4]}}}, upsert=True)
        array = bytearray(bson.encode({"g": {"1": "private"}}))
        array[4] = 4  # the type of an array, in place of a document's
        posts.update_one({"_id": "odd"}, {"$set": RawBSONDocument(bytes(array))})
        assert posts.find_one({"_id": "odd"})["g"] == ["private"]
    gateway.stop()
    lines = [json.loads(line) for line in gateway.log_text().splitlines()]
    texts = [line["text"] for line in lines if line["event"] == "message"]
    assert texts and all("invalid array detected" in text for text in texts), lines
    assert "private" not in gateway.log_text()


def owners_are_shown_if_the_operator_asks():
    gateway, port = start("--show-owners")
    make_traffic(gateway)
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        for _ in range(4):
            client[DATABASE].posts.update_one({"_id": 4711}, {"$push": {"f": {"$each": [1, 2, 3, 4]}}}, upsert=True)
    _, page = fetch(port, "/")
    owners = [row[1] for row in rows_of(page, "Busiest owners")]
    assert owners[0] == f"&quot;{SECRET}&quot;", owners
    assert "4711" in owners, owners
    assert "<script" not in page and "\u202e" not in page
    assert any("&lt;script&gt;" in owner and "\\u202E" in owner for owner in owners), owners
    assert SECRET not in gateway.log_text()
    with open("status.html", "w", encoding="utf-8") as out:
        out.write(page)
    gateway.stop()


subprocess.run([os.environ["SPILLWAY"], "define", STORE, "posts.f", "--preset", "gateway",
                "--collection", "posts", "--array", "f", "--threshold", "3", "--page", "2"],
               check=True, stdout=subprocess.DEVNULL)
run([an_idle_gateway_has_a_page, the_page_shows_what_happened,
     messages_of_libraries_are_events_of_the_log, owners_are_shown_if_the_operator_asks])
