"""Random input from one seed: valid things with a few things changed, and things that never were valid."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from unit.support import CA, V1, V1BETA1

if TYPE_CHECKING:
    from random import Random

AUTHORITY = {"certificate-authority-data": base64.b64encode(CA).decode(), "proxy-url": ""}
MARK = "hunter2hunter2"  # stands where secrets stand; must not come out
PIECES = (
    *("", " ", "\n", "\t", "\r\n", "\0", "\x1b[31m", "\ufeff", "\u202e", "\xa0", "\udcff", "é", "١", "²", "ﬀ", "İ"),
    *("true", "false", "null", "~", "0", "-1", "1e400", "8s", "2m", "9" * 30, "*", "?", ",", ";", ":", "/", "..", "\\"),
    *("{clusterName}", "%s", "%00", "{0}", "$(id)", "`id`", "a", "one", "kueue", "token", "k8s-aws-v1.", "e30.e30.x"),
    *("https://", "http://", "spoke.example", "evil.test", "10.0.0.1", "[::1]", ":6443", "@", "#", "x" * 300),
    *("-----BEGIN CERTIFICATE-----", "AAAA", "&a", "*a", "<<", "!!python/name:os.system", "- ", "{", "[", '"', "'"),
)
KEYS = (
    "",
    "name",
    "kind",
    "user",
    "cluster",
    "token",
    "exec",
    "config",
    "server",
    "namespace",
    "apiVersion",
    "é",
    "\n",
)


def text(r: Random) -> str:
    """Return a text made of pieces that have meant something to somebody."""
    return "".join(r.choices(PIECES, k=r.choice((1, 1, 1, 2, 3, 5))))


def junk(r: Random, depth: int = 0) -> Any:
    """Return any JSON value, small more often than large."""
    kind = r.randrange(9 if depth < 3 else 7)
    if kind == 7:
        return [junk(r, depth + 1) for _ in range(r.randrange(4))]
    if kind == 8:
        return {r.choice((*KEYS, text(r))): junk(r, depth + 1) for _ in range(r.randrange(4))}
    return (None, True, False, r.choice((0, -1, 1, 2**63, 10**30)), r.choice((0.5, 1e300, -0.0)), text(r), "x")[kind]


def mangled(r: Random, value: str) -> str:
    """Return a text with one piece put in, taken out, or the whole replaced."""
    place = r.randrange(len(value) + 1)
    kind = r.randrange(4)
    if kind == 0:
        return value[:place] + r.choice(PIECES) + value[place:]
    if kind == 1:
        return value[:place] + value[place + r.choice((1, 1, 4, 1000)) :]
    return text(r) if kind == 2 else value * r.choice((2, 2, 3))


def mutate(r: Random, value: Any) -> Any:
    """Change one thing somewhere in a value, in place where that is possible, and return it."""
    if isinstance(value, dict) and value and r.random() < 0.85:
        key = r.choice(list(value))
        kind = r.randrange(8)
        if kind == 0:
            del value[key]
        elif kind == 1:
            value[r.choice((*KEYS, mangled(r, key)))] = value.pop(key)
        elif kind == 2:
            value[r.choice(KEYS)] = junk(r)
        else:
            value[key] = mutate(r, value[key])
        return value
    if isinstance(value, list) and value and r.random() < 0.85:
        place = r.randrange(len(value))
        if r.random() < 0.2:
            value.append(value[place])
        else:
            value[place] = mutate(r, value[place])
        return value
    return mangled(r, value) if isinstance(value, str) and r.random() < 0.7 else junk(r)


def changed(r: Random, value: Any) -> Any:
    """Change up to three things in a value."""
    for _ in range(r.randrange(4)):
        value = mutate(r, value)
    return value


def written(r: Random, value: Any, yaml: bool = False) -> str:
    """Write a value as JSON, or as YAML, and now and then damage the text."""
    shown = block(value) if yaml and r.random() < 0.5 else json.dumps(value, ensure_ascii=r.random() < 0.7)
    return mangled(r, shown) if r.random() < 0.15 else shown


def block(value: Any, indent: str = "") -> str:
    """Write a value as YAML in block style."""
    if isinstance(value, dict) and value:
        rows = [f"{indent}{scalar(key)}:{tail(each, indent)}" for key, each in value.items()]
    elif isinstance(value, list) and value:
        rows = [f"{indent}-{tail(each, indent)}" for each in value]
    else:
        return f"{indent}{scalar(value)}\n"
    return "".join(rows)


def tail(value: Any, indent: str) -> str:
    """Write what stands behind a key or a dash."""
    return f"\n{block(value, indent + '  ')}" if isinstance(value, dict | list) and value else f" {scalar(value)}\n"


def scalar(value: Any) -> str:
    """Write a scalar, plain where that may be misread."""
    plain = isinstance(value, str) and value.isalnum()
    return value if plain else json.dumps(value, ensure_ascii=False)


def exec_info(r: Random) -> str:
    """Return a request, valid more often than not."""
    kind = r.randrange(10)
    if kind == 0:
        return text(r)
    if kind == 1:
        return written(r, junk(r))
    config: dict[str, Any] = {"clusterName": "one", "name": "one", "note": MARK}
    cluster = {
        "server": r.choice(("https://spoke.example", f"https://u:{MARK}@spoke.example")),
        "certificate-authority-data": MARK,
        "config": config,
    }
    for key in r.sample(("key", "namespace", "secretName", "context", "timeout", "allowServer", "output", "junk"), 2):
        config[key] = r.choice(("token", "kueue", "*", "evil", 5, True, None))
    info = {
        "apiVersion": r.choice((V1, V1BETA1)),
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": cluster},
        "status": {"token": MARK},
    }
    return written(r, changed(r, info))


def kubeconfig(r: Random, user: dict[str, Any] | None = None) -> bytes:
    """Return a kubeconfig, valid more often than not."""
    if r.random() < 0.1:
        return text(r).encode("utf-8", "surrogateescape")
    own: dict[str, Any] = {"token": MARK} if user is None else user
    if r.random() < 0.2:
        own[r.choice(("exec", "password", "client-key-data", "client-certificate-data", "as"))] = r.choice(
            (MARK, {"command": MARK}, None, "", 5)
        )
        own[r.choice(("tokenFile", "client-certificate", "client-key"))] = r.choice(("/run/one", "one", None))
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "there", "cluster": {"server": "https://127.0.0.1:6443", **AUTHORITY}}],
        "users": [{"name": "me", "user": own}],
        "contexts": [{"name": "here", "context": {"cluster": "there", "user": "me", "namespace": "kueue"}}],
    }
    return written(r, changed(r, body), yaml=True).encode("utf-8", "surrogatepass")


FLAGS = (
    *("cluster-name", "secret-name", "key", "namespace", "context", "kubeconfig", "timeout", "api-version", "output"),
    *("log-level", "allow-server", "allow-namespace", "secret-name-template", "managed-serviceaccount", "check-server"),
    *("help", "version", "token-only", "h", "profile-args", "nonsense", ""),
)
VALUES = ("one", "kueue", "*", "8", "30s", "v1", "json", "token", "debug", "true", "{clusterName}", "*.example")


def arguments(r: Random) -> list[str]:
    """Return a command line."""
    line = []
    for _ in range(r.randrange(7)):
        value = r.choice(VALUES) if r.random() < 0.7 else text(r)
        flag = r.choice(("--", "--", "-", "---", "")) + (r.choice(FLAGS) if r.random() < 0.9 else text(r))
        line += r.choice(([flag, value], [f"{flag}={value}"], [flag], [value]))
    return line
