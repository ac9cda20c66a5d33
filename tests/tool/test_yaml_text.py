"""The tool's YAML is read as the same data by every reader: Go's YAML and PyYAML disagree on what is bare text."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from execcred.tool._yaml_text import dump
from tool.hubs import Fleet
from tool.support import printed

# What sigs.k8s.io/yaml reads as a number or truth when it is bare, and PyYAML does not.
NUMBERS = (
    "1e3",
    "+1e3",
    "1E5",
    "12345e7",
    "-1.5e3",
    ".5e3",
    "+.5",
    "089",
    "0o17",
    "0O17",
    "0X1F",
    "0B1",
    "-_1",
    "1e400",
)
TRUTHS = ("y", "Y", "n", "N")
BREAKS = ("a\x85b", "a\u2028b", "\u2029", "a\n\x85")


@pytest.mark.parametrize("text", [*NUMBERS, *TRUTHS])
@pytest.mark.parametrize("blocks", [True, False])
def test_a_text_that_go_takes_for_a_number_or_truth_is_quoted(text: str, blocks: bool) -> None:
    written = dump({"key": text, text: "value"}, width=120, blocks=blocks)
    assert written == f'key: "{text}"\n"{text}": value\n'


@pytest.mark.parametrize("text", BREAKS)
@pytest.mark.parametrize("blocks", [True, False])
def test_a_line_break_of_yaml_1_1_is_escaped(text: str, blocks: bool) -> None:
    written = dump([text], width=120, blocks=blocks, allow_unicode=True)
    assert not set("\x85\u2028\u2029") & set(written)
    assert yaml.safe_load(written) == [text]


@pytest.mark.parametrize("text", ["spoke-1", "64Mi", "--key=1", "https://10.0.0.1:6443", "ü", "yes-no"])
def test_plain_words_stay_bare(text: str) -> None:
    assert dump(text, width=120, allow_unicode=True) == f"{text}\n...\n"


@pytest.mark.parametrize("text", ["1e3", "y", "0o17"])
def test_a_hostile_profile_does_not_make_the_kubeconfig_unreadable(fleet: Fleet, text: str) -> None:
    fleet.profile("one", {"clusterName": text, text: 1}, **{"tls-server-name": text})
    path = str(fleet.folder / "out.kubeconfig")
    printed("kubeconfig", f"--kubeconfig={fleet.kubeconfig}", f"--provider-file={fleet.providers}", f"--to={path}")
    with open(path, encoding="utf-8") as file:
        written = file.read()
    assert f'tls-server-name: "{text}"\n' in written
    assert f'clusterName: "{text}"\n' in written
    assert f'"{text}": 1\n' in written


@pytest.mark.parametrize("consumer", ["kueue", "knative", "argocd", "generic"])
@pytest.mark.parametrize("text", ["1e3", "n"])
def test_what_a_consumer_takes_keeps_such_names_as_texts(consumer: str, text: str) -> None:
    profile = printed(
        "provider-config", "--plugin=secretreader", f"--for={consumer}", "--part=cluster-profile", f"--cluster={text}"
    )
    assert f'clusterName: "{text}"\n' in profile
    assert f'name: "{text}"\n' in profile


def test_base64_that_begins_with_a_digit_is_the_same_text() -> None:
    data: dict[str, Any] = {"ca": base64.b64encode(b"\xd3" * 9).decode(), "id": "6dae42f8-4368-4678-94ff-3960e28e3630"}
    assert yaml.safe_load(dump(data, width=120)) == data
