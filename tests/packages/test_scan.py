"""A vulnerability scanner finds in each image what the image's own bill of materials says: syft, as it comes."""

from __future__ import annotations

import functools
import json
import tempfile
from typing import Any

import pytest

from needs import absent
from packages.built import DIST, PLUGINS, ROOT, image, run

SYFT = ROOT / ".cache/go-bin/syft"
BOTH = [(plugin, architecture) for plugin in PLUGINS for architecture in ("amd64", "arm64")]
QUIET = {"SYFT_CHECK_FOR_APP_UPDATE": "false"}


@functools.cache
def found_by_the_scanner(plugin: str, architecture: str) -> list[dict[str, Any]]:
    if not SYFT.exists():
        absent("the scanner is not built; run: make scan-tools")
    archive = f"oci-archive:{DIST}/images/{plugin}.oci.tar"
    command = [str(SYFT), "scan", archive, "--platform", f"linux/{architecture}", "--output", "json", "--quiet"]
    with tempfile.TemporaryDirectory() as home:  # for its cache
        done = run(command, {**QUIET, "HOME": home})
    assert done.status == 0, done.err
    scanned = json.loads(done.out)
    assert (scanned["distro"]["id"], scanned["distro"]["versionID"]) == ("debian", "12")
    artifacts: list[dict[str, Any]] = scanned["artifacts"]
    return artifacts


def named_by_the_bill(plugin: str, architecture: str) -> set[str]:
    with image(plugin).layer(architecture) as layer:
        file = layer.extractfile(f"lib/{plugin}-plugin/sbom.spdx.json")
        assert file
        bill = json.loads(file.read())
    locators = {package["externalRefs"][0]["referenceLocator"] for package in bill["packages"]}
    return {locator for locator in locators if locator.startswith(("pkg:deb/", "pkg:pypi/"))}


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_a_scanner_finds_every_package_and_wheel_that_the_bill_names_and_no_other(
    plugin: str, architecture: str
) -> None:
    found = [each for each in found_by_the_scanner(plugin, architecture) if each["type"] in ("deb", "python")]
    assert {each["purl"].partition("&upstream=")[0] for each in found} == named_by_the_bill(plugin, architecture)
    assert {each["name"] for each in found} >= {"libc6", "libssl3", "python3.11-minimal", "libpython3.11-stdlib"}


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_a_scanner_knows_the_interpreter_by_its_own_bytes(plugin: str, architecture: str) -> None:
    assert ("binary", "python") in {(each["type"], each["name"]) for each in found_by_the_scanner(plugin, architecture)}
