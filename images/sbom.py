"""The software bill of materials of an image, SPDX 2.3 in JSON: Debian packages, wheels, what is linked into them."""

from __future__ import annotations

import hashlib
import json
import re
import time
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

from debian import Package
from layout import EPOCH, version

NAMESPACE = "https://execcred.invalid/spdx"
# What METADATA may say under `License-Expression` or `License` and SPDX knows, too.
LICENCES = {
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "PSF-2.0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Apache-2.0 OR BSD-3-Clause",
}
WORDED = {"Apache 2.0": "Apache-2.0", "Apache License 2.0": "Apache-2.0", "MIT License": "MIT"}


def document(plugin: str, architecture: str, packages: list[Package], app: Path) -> str:
    """Return the bill for a plugin's tree; `app` holds the wheels."""
    name = f"{plugin}-plugin"
    root = _package(name, version(), f"pkg:generic/execcred/{name}@{version()}", "Apache-2.0")
    parts = [_debian(package) for package in packages]
    parts += [_wheel(info) for info in sorted(app.glob("*.dist-info"))]
    parts += _linked(app)
    parts.append(_package("musl", "", "pkg:generic/musl", "MIT", "linked into the launcher"))
    inputs = json.dumps(parts, sort_keys=True).encode()
    result = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version()}-{architecture}",
        "documentNamespace": f"{NAMESPACE}/{name}-{architecture}-{hashlib.sha256(inputs).hexdigest()}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
            "creators": [f"Tool: execcred-{version()}"],
        },
        "packages": [root, *parts],
        "relationships": [
            _relation("SPDXRef-DOCUMENT", "DESCRIBES", root["SPDXID"]),
            *[_relation(root["SPDXID"], "CONTAINS", part["SPDXID"]) for part in parts],
        ],
    }
    return json.dumps(result, indent=1, sort_keys=True) + "\n"


def _debian(package: Package) -> dict[str, Any]:
    where = f"arch={package.architecture}&distro=debian-12"
    locator = f"pkg:deb/debian/{quote(package.name)}@{quote(package.version, safe='')}?{where}"
    part = _package(package.name, package.version, locator, "NOASSERTION", "licence text in licenses/")
    part["checksums"] = [{"algorithm": "SHA256", "checksumValue": package.sha256}]
    part["supplier"] = "Organization: Debian"
    return part


def _wheel(info: Path) -> dict[str, Any]:
    head = BytesHeaderParser().parsebytes((info / "METADATA").read_bytes())
    name, number = str(head["Name"]).lower().replace("_", "-"), str(head["Version"])
    said = str(head["License-Expression"] or head["License"] or "")
    licence = WORDED.get(said, said)
    return _package(name, number, f"pkg:pypi/{name}@{number}", licence if licence in LICENCES else "NOASSERTION")


def _linked(app: Path) -> list[dict[str, Any]]:
    """Name what lies inside the wheels' machine code, which no scanner sees, as their own CycloneDX bills say."""
    parts = {}
    for bill in sorted(app.glob("*.dist-info/sboms/*.json")):
        for inner in json.loads(bill.read_bytes()).get("components", []):
            name, number = inner["name"], inner.get("version", "")
            locator = inner.get("purl", f"pkg:generic/{name}@{number}").partition("?")[0].partition("#")[0]
            parts[locator] = _package(name, number, locator, "NOASSERTION", f"in {bill.parts[-3]}")
    if any(app.glob("_cffi_backend*.so")):  # its wheel brings no bill
        parts["libffi"] = _package("libffi", "", "pkg:generic/libffi", "MIT", "in cffi")
    return [parts[locator] for locator in sorted(parts)]


def _package(name: str, number: str, locator: str, licence: str, comment: str = "") -> dict[str, Any]:
    part: dict[str, Any] = {
        "SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', locator.removeprefix('pkg:').partition('?')[0])}",
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}
        ],
    }
    if number:
        part["versionInfo"] = number
    if comment:
        part["comment"] = comment
    return part


def _relation(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
