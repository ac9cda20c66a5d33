"""Logins that need a person: only where one may be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aks.plugin import exec_info, run_plugin
from execcred._protocol import jwt_claims
from execcred.conformance.fakes.azure import AKS, CLIENT, TENANT, Entra

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = ("--client-id", CLIENT, "--tenant-id", TENANT)
BROWSER = """#!{python} -I
import sys, urllib.parse, urllib.request
query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(sys.argv[1]).query))
open({notes!r}, "w").write(sys.argv[1])
urllib.request.urlopen(sys.argv[1]).read()
form = urllib.parse.urlencode({{"code": "authorization-code", "state": query["state"]}}).encode()
urllib.request.urlopen(query["redirect_uri"], form).read()
"""


@pytest.mark.parametrize("mode", ["devicecode", "interactive"])
@pytest.mark.parametrize("terminal", [False, True])
def test_a_controller_is_never_asked(entra: Entra, base: dict[str, str], mode: str, terminal: bool) -> None:
    """interactive: false fails at once, with the command for a person, though stdin be a terminal."""
    done = run_plugin("--login", mode, *FLAGS, env=base, info=exec_info(False), person=terminal)
    told = done.failed(4, "login-needed")
    assert f"aks-plugin --login {mode} --client-id {CLIENT} --tenant-id {TENANT}" in told
    assert entra.asked == []


def test_no_terminal_means_no_person(entra: Entra, base: dict[str, str]) -> None:
    """interactive: true with stdin elsewhere is no promise of a person."""
    run_plugin("-l", "devicecode", *FLAGS, env=base, info=exec_info(True)).failed(4, "login-needed")
    assert entra.asked == []


def test_a_device_code_is_shown_and_waited_for(entra: Entra, base: dict[str, str]) -> None:
    """URL and code go to stderr, the credential alone to stdout."""
    done = run_plugin("-l", "devicecode", *FLAGS, env=base, info=exec_info(True), person=True)
    assert done.status == 0, done.stderr
    assert "open https://device.example.test and enter ABC-DEF before" in done.stderr
    assert done.stderr.count("\n") == 1
    assert '"kind":"ExecCredential"' in done.stdout
    assert jwt_claims(done.stdout.split('"token":"')[1].split('"')[0])["aud"] == AKS
    assert [asked.form.get("device_code") for asked in entra.tokens] == ["device-secret"] * 2


def test_by_hand_without_a_mode_means_a_device_code_as_in_kubelogin(entra: Entra, base: dict[str, str]) -> None:
    """`get-token` with ids alone is what az aks get-credentials writes."""
    done = run_plugin("get-token", "--server-id", AKS, *FLAGS, env=base, person=True)
    assert done.status == 0, done.stderr
    assert "ABC-DEF" in done.stderr


def test_a_person_who_does_not_come_is_not_waited_for_longer_than_the_deadline(
    entra: Entra, base: dict[str, str]
) -> None:
    """The error says what a person would have to run."""
    entra.pending = 1000
    done = run_plugin("-l", "devicecode", "--timeout", "12", *FLAGS, env=base, person=True)
    assert f"aks-plugin --login devicecode --client-id {CLIENT}" in done.failed(4, "login-expired")
    assert done.seconds < 40


def test_a_browser_signs_in(entra: Entra, base: dict[str, str], tmp_path: Path) -> None:
    """The browser gets the sign-in page with user name and PKCE, the redirect gives the code."""
    import sys

    browser = tmp_path / "browser"
    notes = str(tmp_path / "url")
    browser.write_text(BROWSER.format(python=sys.executable, notes=notes))
    browser.chmod(0o755)
    env = {**base, "BROWSER": f"{browser} %s &"}
    done = run_plugin("--login", "interactive", "--login-hint", "a@b.test", *FLAGS, env=env, person=True)
    assert done.status == 0, done.stderr
    assert done.stdout.count("\n") == 1
    url = (tmp_path / "url").read_text()
    for words in (f"{entra.url}/{TENANT}/oauth2/v2.0/authorize", "code_challenge=", "login_hint=a%40b.test"):
        assert words in url
    assert entra.tokens[-1].form["code"] == "authorization-code"


def test_without_a_browser_another_mode_is_named(entra: Entra, base: dict[str, str], tmp_path: Path) -> None:
    """A machine without a browser is told of the device code."""
    env = {**base, "PATH": str(tmp_path)}
    assert "devicecode" in run_plugin("--login", "interactive", *FLAGS, env=env, person=True).failed(
        1, "browser-missing"
    )


def test_a_person_fills_the_cache_that_a_controller_then_uses(
    entra: Entra, base: dict[str, str], tmp_path: Path
) -> None:
    """With --cache-dir a signed-in token serves runs that may ask nobody."""
    flags = ["-l", "devicecode", *FLAGS, "--cache-dir", str(tmp_path / "cache")]
    first = run_plugin(*flags, env=base, info=exec_info(True), person=True)
    assert first.status == 0, first.stderr
    second = run_plugin(*flags, env=base, info=exec_info(False, server="https://127.0.0.1:6443"))
    assert second.credential["token"] in first.stdout
