"""docs/doctor.md shows what the tool really prints, and names its steps, keys and flags."""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import TYPE_CHECKING

from execcred import Env
from execcred.tool import _fleet_kubeconfig
from execcred.tool._doctor import OF_CONTEXT, OF_PROFILE, REST, TABLE
from execcred.tool._main import respond
from execcred.tool._options import parse
from tool.hubs import PLUGIN
from tool.support import ROOT

if TYPE_CHECKING:
    from tool.hubs import Fleet

PAGE = (ROOT / "docs/doctor.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_report_is_what_the_doctor_prints(fleet: Fleet) -> None:
    body = fleet.profile("spoke-1", {"clusterName": "one"})
    body["status"]["conditions"] = [{"type": "ControlPlaneHealthy", "status": "True"}]
    fleet.hub.put(body)
    words = ("doctor", f"--provider-file={fleet.providers}", "--clusterprofile=spoke-1")
    text, status = respond(words, Env(fleet.variables(PATH=os.environ["PATH"])))
    for found, shown in (
        (PLUGIN, "/plugins/bin/secretreader-plugin"),
        (fleet.kubeconfig, "/etc/hub"),
        (fleet.providers, "/etc/providers.json"),
        (fleet.hub.netloc, "hub.example:6443"),
        (fleet.spoke.netloc, "spoke-1.example:6443"),
    ):
        text = text.replace(found, shown)
    assert (text, status) == (next(block for language, block in BLOCKS if language == "text"), 1)


def test_each_command_of_the_page_is_taken() -> None:
    tables = {"doctor": TABLE, "kubeconfig": _fleet_kubeconfig.TABLE}
    commands = [line for language, block in BLOCKS if language == "sh" for line in block.splitlines()]
    for line in commands:
        program, name, *words = shlex.split(line)
        assert program == "execcred"
        assert parse("", tables[name], words)[1] == []
    assert len(commands) == 5


def test_the_table_names_every_step_and_every_key(fleet: Fleet) -> None:
    rows = re.findall(r"^\| (\w+) \| .*? \| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == ["step", *[step.name for step in (*OF_CONTEXT, *OF_PROFILE, *REST)]]
    documented = {name: set(re.findall(r"`(\w+)`", keys)) for name, keys in rows}
    fleet.hub.put_secret("fleet", "one", {"token": "spoke-token"})
    fleet.hub.allow("me", "get", "secrets")
    fleet.profile("spoke-1", {"clusterName": "one"})
    of_profile = ("--clusterprofile=spoke-1", f"--provider-file={fleet.providers}")
    for words in (of_profile, ()):
        text, _ = respond(("doctor", "--output=json", *words), Env(fleet.variables(PATH=os.environ["PATH"])))
        report = json.loads(text)
        assert set(report) == {"subject", "exitStatus", "next", "steps"}
        for step in report["steps"]:
            assert set(step) == {"step", "status", "found", "details", "problems"}
            assert set(step["details"]) <= documented[step["step"]], step["step"]


def test_what_json_of_kubeconfig_holds_is_on_the_page(fleet: Fleet) -> None:
    fleet.profile("spoke-1", {})
    fleet.profile("odd", {}, provider="other")
    words = ("kubeconfig", "--output=json", f"--provider-file={fleet.providers}", f"--to={fleet.folder}/config")
    told = json.loads(respond(words, Env(fleet.variables()))[0])
    shown = re.search(r"`\{(file.*?)\}`; a", PAGE, re.DOTALL)
    assert shown
    assert set(re.findall(r"\w+", shown[1])) == {*told, *(key for row in told["contexts"] for key in row)}
