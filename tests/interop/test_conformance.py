"""The kit leads plugins of others, in another language, to their credential."""

from __future__ import annotations

import pytest

from conformance.reports import GO_BIN, PEERS, Peer, examine
from needs import absent


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_plugin_in_go_answers_a_question_of_the_kit(peer: Peer) -> None:
    if not (GO_BIN / peer.name).exists():
        absent(f"not built: {peer.name}; run `make bench-tools` (needs Go)")
    report = examine(peer, "--vector=a v1 question gets a v1 answer")
    assert report["summary"] == {"MUST": {"pass": 1}}
