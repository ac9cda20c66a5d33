"""Compares what runs left with what their vector expects, and with what holds for every run.

A finding's level is the weaker one of its vector's and its own: `MUST` is what client-go's contract or the KEP asks
for, `SHOULD` is stricter, `OWN` is the form of this suite.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .answer import judge_answer
from .cases import LEVELS, MUST, OWN, SHOULD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .cases import Json
    from .process import Done
    from .stage import Stage


KLOG = re.compile(r"\b[IWEF][0-9]{4} [0-9:.]+ +[0-9]+ ")  # severity, time, process


class Finding(NamedTuple):
    """One thing that is not as it should be, in one line."""

    level: str
    text: str


def judge(stage: Stage, runs: Sequence[Done], *, own: bool = True) -> list[Finding]:
    """Return what is wrong with the runs of a vector, the gravest first.

    Without `own`, the form that only this suite has is not asked for.
    """
    vector = stage.case.level
    found = [(level, text) for done in runs for level, text in _judge_run(stage, done)]
    found += _judge_together(stage, runs)
    levelled = dict.fromkeys(Finding(max(level, vector, key=LEVELS.index), _clean(text)) for level, text in found)
    kept = [each for each in levelled if own or each.level != OWN]
    return sorted(kept, key=lambda each: LEVELS.index(each.level))


def _judge_run(stage: Stage, done: Done) -> Iterator[tuple[str, str]]:
    if done.problem:
        yield MUST, done.problem
        return
    expect = stage.vector["expect"]
    if any(secret in done.stderr for secret in stage.maker.secrets):
        yield MUST, "a secret is on stderr"
    if "Traceback (most recent" in done.stderr or "\ngoroutine " in done.stderr:
        yield SHOULD, "stderr holds a traceback or panic"
    if done.survivors:
        yield SHOULD, "it leaves processes behind"
    yield from _judge_failure(stage, done, expect) if "exit" in expect else _judge_success(stage, done, expect)
    if any(text not in done.stderr for text in stage.maker.build(expect.get("stderr", []))):
        yield OWN, f"stderr does not say {' and '.join(map(repr, stage.maker.build(expect['stderr'])))}"
    shown = done.stderr if "exit" in expect and done.status == 0 else done.stderr + done.stdout
    if any(text in shown for text in stage.maker.build(expect.get("never", []))):
        yield SHOULD, "it repeats what it was given and should not be shown"
    if done.seconds >= expect.get("within", done.seconds + 1):
        yield SHOULD, f"it took {done.seconds:.1f} s instead of {expect['within']} at most"


def _judge_failure(stage: Stage, done: Done, expect: Json) -> Iterator[tuple[str, str]]:
    """Exit status, and nothing on stdout; our own plugins write a line with a code, then at most one with a hint."""
    if done.status == 0:
        yield MUST, "it ends with 0 instead of failing"
        return
    if done.stdout:
        yield SHOULD, f"it ends with {done.status}, but writes to stdout"
    if not done.stderr.strip() and 2 not in stage.vector.get("process", {}).get("closed", []):
        yield SHOULD, "it fails without a word on stderr"
    if done.status < 0:
        yield SHOULD, f"signal {-done.status} ended it"
    if done.status != expect["exit"]:
        yield OWN, f"it ends with {done.status} instead of {expect['exit']}: {said(stage, done)}"
    codes = [expect["code"]] if isinstance(expect["code"], str) else expect["code"]
    first, *rest = done.stderr.removesuffix("\n").split("\n")
    name = "[a-z0-9-]+" if stage.case.plugin == "any" else f"{stage.case.plugin}-plugin"
    line = re.fullmatch(rf"{name}: error: .*[^ ] \[([a-z0-9-]+)\]", first)
    if not line or len(rest) > 1 or not all(each.startswith("hint: ") for each in rest):
        yield OWN, f"stderr is not one line with a code, then at most one hint: {said(stage, done)}"
    elif line[1] not in codes:
        yield OWN, f"the code is {line[1]} instead of {' or '.join(codes)}"
    if not done.stderr.replace("\n", "").isprintable():
        yield OWN, "stderr holds characters that no log should"


def _judge_success(stage: Stage, done: Done, expect: Json) -> Iterator[tuple[str, str]]:
    """A credential, or the text that is expected; stderr is silent unless it is expected not to be."""
    if done.status:
        yield SHOULD if expect.get("may_refuse") else MUST, f"it ends with {done.status}: {said(stage, done)}"
        return
    if done.stderr and "stderr" not in expect:
        yield SHOULD, f"it succeeds, but writes to stderr: {said(stage, done)}"
    if "stdout" in expect:
        if done.stdout != stage.maker.build(expect["stdout"]):
            yield OWN, "stdout is another text than expected"
    elif "prints" in expect:
        if any(text not in done.stdout for text in stage.maker.build(expect["prints"])):
            yield OWN, f"stdout does not say {' and '.join(map(repr, stage.maker.build(expect['prints'])))}"
    else:
        yield from judge_answer(stage, done, expect)


def said(stage: Stage, done: Done) -> str:
    """Return the beginning of a run's stderr, without secrets."""
    text = KLOG.sub("", " ".join(done.stderr[:2000].split()))
    for word in ("dir", "hub", "proxy", "cloud"):  # which are others in each run
        url = str(stage.maker.words.get(word, "\n"))
        text = text.replace(url, f"{{{word}}}").replace(url.partition("://")[2] or url, f"{{{word}_host}}")
    for secret in stage.maker.secrets:
        text = text.replace(secret, "…")
    return (text if len(text) <= 160 else text[:160] + "…") or "nothing on stderr"


def _clean(text: str) -> str:
    """Return text fit for one line of a table and for XML."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _judge_together(stage: Stage, runs: Sequence[Done]) -> Iterator[tuple[str, str]]:
    """The same answer from every run, and what hub and proxy were asked."""
    expect = stage.vector["expect"]
    if len({done.stdout for done in runs}) > 1:
        yield SHOULD, "its runs give different bytes, and clients compare certificates' texts"
    if any(done.problem for done in runs):
        return
    if stage.good_hub:
        yield from _judge_hub(stage, expect)
    if stage.proxy:
        if "proxied" in expect and stage.proxy.targets != stage.maker.build(expect["proxied"]):
            yield SHOULD, f"the proxy was asked for {stage.proxy.targets or 'nothing'}"
        if "proxy_authorization" in expect and stage.proxy.authorizations != expect["proxy_authorization"]:
            yield SHOULD, "the proxy was shown another login"


def _judge_hub(stage: Stage, expect: Json) -> Iterator[tuple[str, str]]:
    hub = stage.good_hub
    if hub and "requests" in expect:
        asked = [f"{each.method} {each.path}" for each in hub.requests]
        if asked != expect["requests"] * stage.vector.get("runs", 1):
            more = f" and {len(asked) - 3} more" if len(asked) > 3 else ""
            yield SHOULD, f"the hub was asked {', '.join(asked[:3]) or 'nothing'}{more}"
        if {each.user for each in hub.requests} - {expect.get("as", "reader")}:
            yield SHOULD, "the hub was asked as somebody else"
        if asked and len(asked) != hub.connections:
            yield SHOULD, f"{len(asked)} requests took {hub.connections} connections"
    if hub and "headers" in expect and [set(each.headers) for each in hub.requests] != [set(expect["headers"])]:
        yield OWN, "the hub was sent other headers"
