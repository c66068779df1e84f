#!/usr/bin/env python3
"""check_sbom.py DIST STATUS: the bill of materials of the release in DIST names what the release has.

STATUS is dpkg's database in the image.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

dist, status = Path(sys.argv[1]), Path(sys.argv[2])
(path,) = dist.glob("*.spdx.json")
bill = json.loads(path.read_text(encoding="utf-8"))
packages = {package["SPDXID"]: package for package in bill["packages"]}
assert bill["spdxVersion"] == "SPDX-2.3" and len(packages) == len(bill["packages"])
assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", identity) for identity in packages)

contents, described, depends = {}, set(), set()
for relation in bill["relationships"]:
    element, kind, related = (relation[key] for key in (
        "spdxElementId", "relationshipType", "relatedSpdxElement"))
    assert element in packages or element == "SPDXRef-DOCUMENT", element
    assert related in packages, related
    if kind == "DESCRIBES":
        described.add(packages[related]["name"])
    elif kind == "CONTAINS":
        contents.setdefault(packages[element]["name"], set()).add(
            (packages[related]["name"], packages[related]["versionInfo"]))
    else:
        depends.add((packages[element]["name"], packages[related]["name"]))

released = {file.name for suffix in ("deb", "tar", "gz", "whl") for file in dist.glob(f"*.{suffix}")}
assert described == released, described ^ released
for package in packages.values():
    if package["name"] in released:
        digest = hashlib.sha256((dist / package["name"]).read_bytes()).hexdigest()
        assert package["checksums"][0]["checksumValue"] == digest, package["name"]

installed = set()
for paragraph in status.read_text(encoding="utf-8").split("\n\n"):
    if re.search(r"^Status: \S+ \S+ installed$", paragraph, re.MULTILINE):
        installed.add(tuple(re.search(rf"^{field}: (\S+)$", paragraph, re.MULTILINE)[1]
                            for field in ("Package", "Version")))
assert len(installed) > 80, installed
(image,) = (name for name in released if name.endswith(".tar"))
assert contents[image] == installed, contents[image] ^ installed
for library in ("libmongoc-1.0-0", "librocksdb7.8", "libbson-1.0-0"):
    assert ("spillway", library) in depends, library
for wheel in (name for name in released if name.endswith(".whl")):
    names = {name for name, _ in contents[wheel]}
    assert {"libmongoc-1.0-0", "librocksdb7.8", "libbson-1.0-0"} <= names, names
print(f"the bill of materials has {len(packages)} packages, each file of the release with its checksum")
