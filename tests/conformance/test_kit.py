"""`execcred conformance` as people run it: against our plugins, and against commands that are wrong on purpose."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from execcred.conformance import LOOPBACK_ONLY
from execcred.conformance.cases import PLUGINS
from terminals import shown

from .commands import COMMAND, executable

Json = dict[str, Any]
FIRST = "--vector=a v1 question gets a v1 answer"
GOOD = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "abc"}}'
# What answers the version that is asked for, and checks nothing.
POLITE = f"""case "$KUBERNETES_EXEC_INFO" in *v1beta1*) v=v1beta1;; *) v=v1;; esac; echo '{GOOD}' | sed "s,/v1,/$v,\""""

pytestmark = [pytest.mark.skipif(bool(COMMAND), reason="another command is tested"), pytest.mark.timeout(600)]


def variables(folder: Path) -> dict[str, str]:
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    return {"PYTHONPATH": LOOPBACK_ONLY, "PATH": os.environ["PATH"], "TMPDIR": str(folder), **measured}


def tool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the kit with a temporary folder of its own, which it must leave empty."""
    temporary = folder / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "execcred.tool", "conformance", *arguments]
    done = subprocess.run(
        command, env=variables(temporary), cwd=folder, capture_output=True, text=True, check=False, timeout=500
    )
    assert list(temporary.iterdir()) == []
    return done


def report(folder: Path, *arguments: str) -> Json:
    """Run the kit; return its report as JSON."""
    done = tool(folder, "--output=json", *arguments)
    assert done.stderr == ""
    found: Json = json.loads(done.stdout)
    assert done.returncode == int(not found["conforms"])
    return found


def plugin(folder: Path, body: str, first: str = "#!/bin/sh") -> str:
    """Write an executable; return its path."""
    path = folder / "plugin"
    path.write_text(f"{first}\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", PLUGINS)
def test_our_plugins_conform_in_every_point(name: str, tmp_path: Path) -> None:
    found = report(tmp_path, f"--kind={name}", "--strict", "--timeout=60", "--jobs=2", "--", *executable(name))
    assert [each for each in found["vectors"] if each["result"] not in ("pass", "skipped")] == []
    assert found["summary"]["MUST"]["pass"] > 5


WRONG = {
    "prints twice": (f"echo '{GOOD}'; echo '{GOOD}'", "something follows the answer"),
    "answers another version": (f"echo '{GOOD}' | sed s,/v1,/v1beta1,", "apiVersion is"),
    "ends with 0 and nothing": ("exit 0", "stdout is empty"),
    "gives an empty token": (f"echo '{GOOD}' | sed s/abc//", "neither a token nor"),
    "leaks the token": (f"echo token abc >&2; echo '{GOOD}'", "the credential is on stderr"),
    "has expired": (
        f"""echo '{GOOD}' | sed 's/"abc"/"abc", "expirationTimestamp": "2020-01-01T00:00:00Z"/'""",
        "already expired, at 2020-01-01T00:00:00Z",
    ),
    "gives half a pair": (f"echo '{GOOD}' | sed s/token/clientKeyData/", "without its certificate"),
    "prints words": ("echo token: abc", "not JSON"),
    "prints bytes": ("printf '\\377\\376\\000\\001'", "not JSON"),
    "prints thirty megabytes": ("head -c 30000000 /dev/zero | tr '\\0' x", "not JSON"),
    "fails": ("echo no luck >&2; exit 7", "it ends with 7: no luck"),
    "dies": ("kill -SEGV $$", "it ends with -11"),
    "hangs": ("sleep 300", "it did not end within 2 s"),
    "hangs deaf to signals": ("trap '' TERM INT HUP; while :; do sleep 300; done", "it did not end within 2 s"),
    "writes for ever": ("yes", "it did not end within 2 s"),
    "leaves stdout to a child": (f"sleep 300 & echo '{GOOD}'", "keeps stdout or stderr open"),
    "reads stdin, of which there is none": (f"read line || exit 5; echo '{GOOD}'", "it ends with 5"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_plugin_is_judged(name: str, tmp_path: Path) -> None:
    body, why = WRONG[name]
    limit = 2 if "did not end" in why else 60
    found = report(tmp_path, FIRST, f"--timeout={limit}", "--", plugin(tmp_path, body))
    [row] = found["vectors"]
    assert (row["result"], row["level"]) == ("fail", "MUST"), row
    assert row["findings"][0]["level"] == "MUST"
    assert why in row["findings"][0]["text"]


@pytest.mark.parametrize(
    ("body", "result", "why"),
    [
        (f"echo '{GOOD}'", "pass", ""),
        (f"echo '{GOOD}' | sed 's/, /,\\n /g'; echo", "pass", ""),
        (f"head -c 10000000 /dev/zero >&2; echo '{GOOD}'", "falls short", "writes to stderr"),
        (f"sleep 300 >/dev/null 2>&1 & echo '{GOOD}'", "falls short", "leaves processes behind"),
    ],
    ids=["good", "many lines", "ten megabytes on stderr", "a child left"],
)
def test_a_plugin_that_a_client_can_use_does_not_fail(body: str, result: str, why: str, tmp_path: Path) -> None:
    [row] = report(tmp_path, FIRST, "--timeout=20", "--", plugin(tmp_path, body))["vectors"]
    assert row["result"] == result, row
    assert all(why in each["text"] for each in row["findings"])


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/nowhere/plugin", "no such file"),
        ("no-such-plugin-in-path", "no such file"),
        ("{folder}", "permission denied"),
        ("{folder}/plain", "permission denied"),
        ("{folder}/headless", "exec format error"),
        ("{folder}/orphan", "no such file"),
    ],
)
def test_a_command_that_cannot_run_is_judged_and_soon_given_up(command: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    plugin(tmp_path, "", "\x7fnothing")
    (tmp_path / "plugin").rename(tmp_path / "headless")
    plugin(tmp_path, "", "#!/nowhere/interpreter")
    (tmp_path / "plugin").rename(tmp_path / "orphan")
    found = report(tmp_path, "--kind=any", "--jobs=1", "--", command.replace("{folder}", str(tmp_path)))
    tried, rest = found["vectors"][:5], found["vectors"][5:]
    assert all("it did not start: " in row["findings"][0]["text"] for row in tried)
    assert why in tried[0]["findings"][0]["text"]
    assert {row["findings"][0]["text"].partition(":")[0] for row in rest} == {"given up"}


def test_it_is_on_loopback_alone_where_the_kernel_allows(tmp_path: Path) -> None:
    lonely = f"grep ': ' /proc/net/dev | grep -qv ' lo:' && exit 9; echo '{GOOD}'"
    found = report(tmp_path, FIRST, "--", plugin(tmp_path, lonely))
    assert found["conforms"] == found["network"].startswith("one of its own")


def test_python_never_leaves_loopback(tmp_path: Path) -> None:
    body = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    [row] = report(tmp_path, FIRST, "--", plugin(tmp_path, body, f"#!{sys.executable}"))["vectors"]
    assert "leaves loopback: socket.getaddrinfo 192.0.2.1" in row["findings"][-1]["text"]


def test_a_daemon_that_a_plugin_starts_is_ended(tmp_path: Path) -> None:
    body = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300' >/dev/null 2>&1 </dev/null & echo '{GOOD}'"
    report(tmp_path, FIRST, "--", plugin(tmp_path, f"{body}; until [ -s {tmp_path}/pid ]; do sleep 0.05; done"))
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_an_end_from_outside_ends_what_runs_and_leaves_nothing(tmp_path: Path) -> None:
    body = f"echo $$ > {tmp_path}/pid; exec sleep 300"
    (tmp_path / "tmp").mkdir()
    flags = ["--timeout=250", "--jobs=1"]  # so that one plugin writes its number, which is whole when it is there
    command = [sys.executable, "-m", "execcred.tool", "conformance", *flags, "--", plugin(tmp_path, body)]
    with subprocess.Popen(
        command, env=variables(tmp_path / "tmp"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as kit:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.05)
            assert kit.poll() is None
        kit.terminate()
        stdout, stderr = kit.communicate(timeout=60)
    assert (kit.returncode, stdout) == (3, "")
    assert stderr.startswith("execcred: error: interrupted")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


# --- kinds and recipes ---


def test_a_reader_that_answers_without_reading_gives_another_credential(tmp_path: Path) -> None:
    vectors = "--vector=the Secret of the cluster's name"
    [row] = report(tmp_path, "--kind=secretreader", vectors, "--", plugin(tmp_path, f"echo '{GOOD}'"))["vectors"]
    assert "another credential" in row["findings"][0]["text"]
    assert "the hub was asked nothing" in row["findings"][1]["text"]


@pytest.mark.parametrize(
    ("kind", "why"),
    [("eks", "no presigned request"), ("gke", "did not issue the token"), ("aks", "did not issue the token")],
)
def test_a_stand_in_cloud_tells_a_token_of_its_own(kind: str, why: str, tmp_path: Path) -> None:
    vector = {"eks": "the token of an EKS cluster", "gke": "a token for GKE", "aks": "a token for AKS"}[kind]
    [row] = report(tmp_path, f"--kind={kind}", f"--vector={vector}", "--", plugin(tmp_path, f"echo '{GOOD}'"))[
        "vectors"
    ]
    assert (row["result"], why in row["findings"][0]["text"]) == ("fail", True), row


def test_a_token_for_another_cluster_is_refused_by_sts(tmp_path: Path) -> None:
    command = [*executable("eks"), "--cluster-name=other"]
    [row] = report(tmp_path, "--kind=eks", "--vector=the token of an EKS cluster", "--", *command)["vectors"]
    assert row["findings"][0]["text"] == "STS refuses the token: SignatureDoesNotMatch"


def test_a_command_with_placeholders_says_itself_what_the_recipes_flags_would(tmp_path: Path) -> None:
    flags = ["token", "-i", "{clusterName}", "--region={region}"]
    found = report(tmp_path, "--kind=eks", "--vector=without exec info", "--", *executable("eks"), *flags)
    assert [row["result"] for row in found["vectors"]] == ["pass"]
    assert found["command"][-3:] == flags[1:]


def test_a_recipe_leads_another_plugin_to_its_credential(tmp_path: Path) -> None:
    script = (
        f'test "$1 $2 $TOKEN_FILE $ZONE" = "--from c9 $PWD/secret.txt z1" || exit 8\n'
        f"""echo '{GOOD}' | sed s/abc/"$(cat "$TOKEN_FILE")"/"""
    )
    recipe = {
        "config": {"zone": "z1"},
        "args": ["--from", "c9"],
        "flags": None,
        "env": {"TOKEN_FILE": "{dir}/secret.txt", "ZONE": "z1"},
        "files": {"secret.txt": {"$secret": "of-the-recipe"}},
        "server": "https://elsewhere.test",
    }
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    found = report(tmp_path, "--recipe=recipe.json", "--vector=exec info", "--", plugin(tmp_path, script))
    results = {row["vector"]: row for row in found["vectors"]}
    assert results["escapes and letters of any script in exec info do no harm"]["result"] == "pass"
    skipped = results["empty exec info is stand-alone use"]
    assert (skipped["result"], "no flags" in skipped["findings"][0]["text"]) == ("skipped", True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("", "not JSON"),
        ("config: {}", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no JSON object"),
        ('{"flag": []}', "no recipe has a key 'flag'"),
        ('{"config": []}', "config has the wrong JSON type"),
        ('{"words": null}', "words has the wrong JSON type"),
        ('{"args": {}}', "args has the wrong JSON type"),
        ('{"cloud": "Oracle"}', "cloud is none of"),
    ],
)
def test_a_recipe_that_is_none_is_refused(text: str | None, why: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "recipe.json").write_text(text)
    done = tool(tmp_path, "--recipe=recipe.json", "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert "[recipe-unusable]" in done.stderr
    assert why in done.stderr


def test_a_recipe_with_an_unknown_maker_fails_its_vectors_only(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text('{"env": {"X": {"$wish": 1}}}')
    [row] = report(tmp_path, "--recipe=recipe.json", FIRST, "--", "true")["vectors"]
    assert row["findings"][0]["text"] == "the kit itself failed: ValueError: no maker '$wish'"


# --- what it prints, and how it is called ---


def test_the_table_has_a_line_for_each_vector_and_a_summary(tmp_path: Path) -> None:
    command = plugin(tmp_path, POLITE)
    done = tool(tmp_path, "--", command)
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0].split() == ["level", "result", "vector"]
    rows = lines[1 : lines.index("")]
    assert all(re.match(r"(MUST|SHOULD)\s+(pass|fail|falls short|skipped)\s+\w", row) for row in rows)
    assert rows[0] == "MUST    pass         a v1 question gets a v1 answer"
    assert any(row.startswith("SHOULD  falls short  another kind is refused: it ends with 0") for row in rows)
    assert lines[-1] == "conforms"
    assert any(re.fullmatch(r"SHOULD +\d+ pass, \d+ falls short", line) for line in lines)
    assert done.stderr == ""


def test_strict_makes_falling_short_a_failure(tmp_path: Path) -> None:
    command = plugin(tmp_path, f"echo '{GOOD}'")
    done = tool(tmp_path, "--strict", "--vector=another kind", "--", command)
    assert done.returncode == 1
    assert done.stdout.endswith("does not conform\n")


def test_own_adds_what_only_this_suite_has(tmp_path: Path) -> None:
    command = executable("secretreader")
    own = report(tmp_path, "--kind=secretreader", "--own", "--vector=with the nearest one", "--", *command)
    assert [(row["level"], row["result"]) for row in own["vectors"]] == [("OWN", "pass")]


@pytest.mark.parametrize("strict", [True, False])
def test_junit_xml_has_its_usual_shape(strict: bool, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text('{"flags": null}')
    flags = ["--recipe=recipe.json", "--junit=report.xml", *["--strict"] * strict]
    tool(tmp_path, *flags, "--", plugin(tmp_path, POLITE))
    root = ET.parse(tmp_path / "report.xml").getroot()
    [suite] = root
    assert (root.tag, suite.tag, suite.get("name")) == ("testsuites", "testsuite", "execcred conformance any")
    assert all(case.tag == "testcase" for case in suite)
    assert all({"classname", "name", "time"} == set(case.attrib) for case in suite)
    outcomes = [[each.tag for each in case] for case in suite]
    assert all(outcome in ([], ["failure"], ["skipped"], ["system-out"]) for outcome in outcomes)
    for each in (root, suite):
        assert each.get("tests") == str(len(outcomes))
        assert each.get("failures") == str(outcomes.count(["failure"]))
        assert each.get("skipped") == str(outcomes.count(["skipped"]))
        assert (each.get("errors"), float(each.get("time") or 0) > 0) == ("0", True)
    assert all(each.get("message") and each.get("type") in ("MUST", "SHOULD") for each in suite.iter("failure"))
    assert bool(outcomes.count(["failure"])) == strict
    assert bool(outcomes.count(["system-out"])) != strict


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ([], 2, "usage"),
        (["--"], 2, "usage"),
        (["--", ""], 2, "usage"),
        (["true"], 2, "usage"),
        (["--frobnicate", "--", "true"], 2, "usage"),
        (["--kind=oci", "--", "true"], 2, "setting-invalid"),
        (["--timeout=0", "--", "true"], 2, "setting-invalid"),
        (["--jobs=0", "--", "true"], 2, "setting-invalid"),
        (["--jobs=many", "--", "true"], 2, "setting-invalid"),
        (["--vector=no such vector", "--", "true"], 2, "usage"),
        (["--junit=/nowhere/report.xml", "--", "true"], 1, "report-unwritable"),
        (["--junit=.", "--", "true"], 1, "report-unwritable"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(arguments: list[str], status: int, code: str, tmp_path: Path) -> None:
    done = tool(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    first, second = done.stderr.splitlines()
    assert first.endswith(f"[{code}]")
    assert second.startswith("hint: ")


def test_without_its_libraries_the_hint_names_the_extra() -> None:
    source = str(Path(LOOPBACK_ONLY).parents[2])
    code = f"import sys; sys.path.insert(0, {source!r}); from execcred.tool import main; main()"
    command = [sys.executable, "-I", "-S", "-c", code, "conformance", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "trustme, jwt, cryptography, yaml cannot be imported [conformance-not-installed]" in done.stderr
    assert "pip install '.[conformance]'" in done.stderr


def test_progress_is_shown_on_a_terminal(tmp_path: Path) -> None:
    leader, follower = os.openpty()
    command = [sys.executable, "-m", "execcred.tool", "conformance", FIRST, "--", "true"]
    subprocess.run(
        command, env=variables(tmp_path), stderr=follower, stdout=subprocess.DEVNULL, check=False, timeout=60
    )
    os.close(follower)
    assert b"1 of 1 vectors" in shown(leader)


def test_nothing_but_the_sub_command_knows_the_kit() -> None:
    root = Path(__file__).parents[2]
    sources = [*(root / "plugins").rglob("*.py"), *(root / "common/execcred").rglob("*.py")]
    others = [path for path in sources if "conformance" not in path.relative_to(root).parts]
    naming = [path.name for path in others if re.search(r"execcred\.conformance|import conformance", path.read_text())]
    assert naming == ["_conformance.py"]
