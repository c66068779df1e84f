"""The alerts and the dashboard name only metrics and labels that a gateway, a sweep and a migration have.

The scrapes are of real processes on the server of $STORE. `monitoring.py FOLDER PAGES`: FOLDER has alerts.yml
and dashboard.json, PAGES has monitor.md and run-gateway.md, which name each metric.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pymongo

from gateway_lib import WAIT_SECONDS, Gateway, run

STORE = os.environ["STORE"]
FOLDER, PAGES = sys.argv[1:]
DATABASE = pymongo.uri_parser.parse_uri(STORE)["database"]
SELECTOR = re.compile(r"\b(spillway_\w+|up)\b(?:\{([^}]*)\})?")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)(=~|=)"((?:[^"\\]|\\.)*)"')
scraped = {}  # the name of a metric: [{label: value}]


def fetch(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.read().decode()


def status(port, path):
    try:
        return 200, fetch(port, path)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def take_scrape(port):
    """Remember the samples; promtool must accept the text. Return the value of each sample."""
    text = fetch(port, "/metrics")
    subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True)
    values = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        labels = {found[1]: found[3] for found in LABEL.finditer(labels or "")}
        scraped.setdefault(name, []).append(labels)
        values[name, *sorted(labels.values())] = float(value)
    return values


class Job:
    """A process of the program that serves metrics."""

    def __init__(self, *arguments):
        with open(f"{arguments[0]}.err", "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen([os.environ["SPILLWAY"], *arguments, "--metrics", "0"],
                                            stdout=subprocess.DEVNULL, stderr=errors)
        self.port = int(self.wait_for(errors.name, r"metrics on http://127.0.0.1:(\d+)/metrics\n")[1])

    def wait_for(self, path, pattern):
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            with open(path, encoding="utf-8") as text:
                found = re.search(pattern, text.read())
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{path} never has {pattern}")

    def until(self, key, least):
        """Scrape until the sample has at least this value."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            values = take_scrape(self.port)
            if values[key] >= least:
                return values
            time.sleep(0.1)
        raise AssertionError(f"{key} is {values[key]}, not {least}")

    def stop(self, code=0):
        self.process.terminate()
        ended = self.process.wait(WAIT_SECONDS)
        assert ended == code, f"ended with {ended}"


def spillway(*arguments):
    subprocess.run([os.environ["SPILLWAY"], *arguments], check=True, stdout=subprocess.DEVNULL)


def gateway_has_metrics():
    spillway("define", STORE, "posts", "--preset", "gateway", "--collection", "posts", "--array", "f",
             "--threshold", "4", "--page", "4")
    gateway = Gateway(STORE, "--metrics", "0")
    with pymongo.MongoClient("127.0.0.1", gateway.port) as client:
        posts = client[DATABASE].posts
        for _ in range(4):
            posts.update_one({"_id": "ada"}, {"$push": {"f": {"$each": [1, 2, 3, 4]}}}, upsert=True)
        try:
            posts.update_one({"_id": "ada"}, {"$bit": {"f": {"and": 1}}})
        except pymongo.errors.OperationFailure as error:
            assert error.code == 115
    take_scrape(gateway.metrics_port())
    gateway.stop()


def sweep_has_metrics():
    with pymongo.MongoClient(STORE) as client:
        client[DATABASE].carts.insert_many([{"_id": i, "rows": list(range(20))} for i in range(5)])
    spillway("define", STORE, "carts", "--preset", "feed-recent", "--collection", "carts", "--array", "rows",
             "--page-collection", "cartPages", "--threshold", "4", "--page", "4")
    job = Job("sweep", STORE, "carts", "--watch", "--interval", "1")
    values = job.until(("spillway_job_passes_total", "sweep"), 2)
    expected = {"owners": 5, "owners_adopted": 5, "owners_skipped": 0, "elements_moved": 80, "pages_written": 20}
    for name, value in expected.items():
        found = values[f"spillway_job_{name}_total", "sweep"]
        assert found == value, f"{name} is {found}, not {value}"
    assert values["spillway_job_info", "carts", "sweep"] == 1
    assert abs(values["spillway_job_last_success_time_seconds", "sweep"] - time.time()) < WAIT_SECONDS
    assert status(job.port, "/healthz") == (200, "ok\n")
    assert status(job.port, "/")[0] == 404
    job.stop()


def migrate_has_metrics():
    with pymongo.MongoClient(STORE) as client:
        client[DATABASE].logs.insert_many([{"_id": i, "lines": list(range(20))} for i in range(5)])
    definition = subprocess.run([os.environ["SPILLWAY"], "define", STORE, "carts", "--json"], check=True,
                                capture_output=True, text=True).stdout
    definition = {**json.loads(definition), "name": "logs", "collection": "logs", "array": "lines",
                  "pageCollection": "logPages"}
    array = {"database": DATABASE, "collection": f"{DATABASE}.logs", "path": "lines", "migrate": True,
             "definition": definition}
    with open("plan.json", "w", encoding="utf-8") as plan:
        json.dump({"spillwayPlan": 1, "source": DATABASE, "arrays": [array]}, plan)
    with open("pause", "w", encoding="utf-8"):
        pass
    job = Job("migrate", STORE, "plan.json", "--execute", "--pause-file", "pause")
    job.until(("spillway_job_waiting", "migrate"), 1)
    os.remove("pause")
    assert job.process.wait(WAIT_SECONDS) == 0


def selectors():
    """Each (place, metric, labels) of an expression in the alerts and in the dashboard."""
    with open(f"{FOLDER}/alerts.yml", encoding="utf-8") as text:
        rules = re.findall(r"expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):", text.read())
    with open(f"{FOLDER}/dashboard.json", encoding="utf-8") as text:
        dashboard = json.load(text)
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(rules) > 8 and len(panels) > 20, f"{len(rules)} rules, {len(panels)} expressions"
    for place, expressions in (("alerts.yml", rules), ("dashboard.json", panels)):
        for expression in expressions:
            found = list(SELECTOR.finditer(expression))
            assert found, f"{place}: no metric in {expression}"
            for selector in found:
                yield place, selector[1], LABEL.findall(selector[2] or "")


def every_metric_is_scraped():
    """Prometheus itself adds `up`, and the labels job and instance."""
    for place, name, labels in selectors():
        if name == "up":
            continue
        assert name in scraped, f"{place}: no scrape has {name}"
        for label, operator, value in labels:
            if label in ("job", "instance"):
                continue
            assert operator == "=", f"{place}: {name} by {label}{operator}: not checked"
            assert any(sample.get(label) == value for sample in scraped[name]), \
                f"{place}: no sample of {name} has {label}={value}"


def every_metric_is_shown():
    """The dashboard leaves out no family of metrics."""
    with open(f"{FOLDER}/dashboard.json", encoding="utf-8") as text:
        shown = set(re.findall(r"spillway_\w+", text.read()))
    shown |= {name.replace("_bucket", end) for name in shown for end in ("_sum", "_count")}
    shown.add("spillway_job_start_time_seconds")  # an alert uses it
    assert set(scraped) <= shown, f"not in the dashboard: {set(scraped) - shown}"


def every_metric_is_documented():
    """The pages for operators name each family of metrics."""
    named = set()
    for page in ("monitor.md", "run-gateway.md"):
        with open(f"{PAGES}/{page}", encoding="utf-8") as text:
            named |= set(re.findall(r"\bspillway_\w+", text.read()))
    families = {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in scraped}
    assert families <= named, f"not in the documentation: {families - named}"


run([gateway_has_metrics, sweep_has_metrics, migrate_has_metrics, every_metric_is_scraped,
     every_metric_is_shown, every_metric_is_documented])
