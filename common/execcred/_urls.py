"""URLs, read strictly: whom a credential goes to must not depend on who reads the text. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Url:
    """An absolute URL in parts; the host is lower case, without brackets."""

    __slots__ = ("host", "path", "port", "scheme", "userinfo")

    def __init__(self, scheme: str, userinfo: str, host: str, port: int, path: str) -> None:
        self.scheme = scheme
        self.userinfo = userinfo
        self.host = host
        self.port = port
        self.path = path

    @property
    def authority(self) -> str:
        """host:port, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_url(text: str) -> Url:
    """Take an http or https URL apart, strictly, so that no other reader can see another host; ValueError if not."""
    scheme, separator, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    userinfo, at, hostport = authority.rpartition("@")
    host, _, port = hostport.rpartition(":") if not hostport.endswith("]") else (hostport, "", "")
    if not host:
        host, port = hostport, ""
    scheme = scheme.lower()
    bare = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    good_port = not port or (_is_number(port) and 0 < int(port) < 65536)
    clean = text.isascii() and text.isprintable() and not set(" \\#") & set(text) and "?" not in authority
    if not separator or scheme not in ("http", "https") or not bare or not good_port or not clean:
        raise ValueError("not a URL")
    if not is_host(bare) or not host.startswith("[") == host.endswith("]") == (":" in bare):
        raise ValueError("not a host name")
    return Url(
        scheme, userinfo if at else "", bare.lower(), int(port or {"http": 80, "https": 443}[scheme]), slash + path
    )


def is_host(text: str) -> bool:
    """Tell whether `text` is a host name, of labels that DNS and every client take, or an address, without brackets."""
    letters = "0123456789abcdefghijklmnopqrstuvwxyz.-_:"
    if not text.isascii() or text.lower().strip(letters):
        return False
    if ":" in text:
        return bool(_in_network(text, "::/0"))
    return len(text) < 254 and all(0 < len(label) < 64 for label in text.removesuffix(".").split("."))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5


def shown(text: str) -> str:
    """Return a URL as an error may show it: without userinfo, query and a path like one, where passwords may stand."""
    try:
        url = parse_url(text)
    except ValueError:
        return "an invalid URL" if text else "nothing"
    path = "/…" if "@" in url.path else url.path.partition("?")[0]  # two URLs run together have an @ there
    return f"{url.scheme}://{'…@' if url.userinfo else ''}{url.authority}{path}"


def same_server(one: str, other: str) -> bool:
    """Tell whether two URLs name one server: scheme, host, port and path, however they are spelt."""
    try:
        first, second = parse_url(one), parse_url(other)
    except ValueError:
        return False
    return [first.scheme, first.authority, first.path.rstrip("/")] == [
        second.scheme,
        second.authority,
        second.path.rstrip("/"),
    ]


def matches(text: str, patterns: Iterable[str], https: bool = True) -> bool:
    """Tell whether the host of URL `text` is in `patterns`: globs (`*` crosses dots) or CIDRs, a port only if written.

    What cannot be read strictly matches nothing, nor does plain http where `https` is asked.
    """
    try:
        url = parse_url(text)
    except ValueError:
        return False
    if url.userinfo or (https and url.scheme != "https"):
        return False
    return any(_matches(url, pattern.lower()) for pattern in patterns)


def is_pattern(text: str) -> bool:
    """Tell whether `text` is a host glob, an address or a CIDR, the first two with a port at most."""
    host, port = _split(text.lower())
    if "/" in host or ":" in host:
        return _in_network("", host) is not None and not (port and "/" in host)
    letters = "0123456789abcdefghijklmnopqrstuvwxyz.-_*?"
    return bool(host) and not host.strip(letters) and 0 < int(port or 1) < 65536


def _split(pattern: str) -> tuple[str, str]:
    """Return host and port of a pattern, "" for none."""
    host, _, port = pattern.rpartition(":")
    if not _is_number(port) or (":" in host and not host.endswith("]")):
        host, port = pattern, ""
    return host.strip("[]"), port


def _matches(url: Url, pattern: str) -> bool:
    host, port = _split(pattern)
    if port and int(port) != url.port:
        return False
    if "/" in host:
        return bool(_in_network(url.host, host))
    address = "0123456789."
    if host.strip("*?.") and not host.strip(f"{address}*?") and url.host.strip(address):
        return False  # 10.0.* is meant for addresses, not for the name 10.0.evil.example
    from fnmatch import fnmatchcase

    return fnmatchcase(url.host.rstrip("."), host.replace("[", "[[]"))


def _in_network(host: str, network: str) -> bool | None:
    """Tell whether `host` is an address of a network; None when that is no network."""
    from ipaddress import ip_address, ip_network

    try:
        addresses = ip_network(network, strict=False)
    except ValueError:
        return None
    try:
        return ip_address(host) in addresses
    except ValueError:
        return False


def env_proxy(url: Url, variables: Mapping[str, str]) -> str:
    """Return the proxy that HTTPS_PROXY and NO_PROXY give for `url`, "" for none; loopback is never proxied."""
    proxy = variables.get("HTTPS_PROXY") or variables.get("https_proxy") or ""
    if not proxy or url.host in ("localhost", "::1") or _in_network(url.host, "127.0.0.0/8"):
        return ""
    rules = variables.get("NO_PROXY") or variables.get("no_proxy") or ""
    if any(_exempt(url, rule.strip().lower()) for rule in rules.split(",") if rule.strip()):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _exempt(url: Url, rule: str) -> bool:
    """Tell whether one NO_PROXY rule (`*`, CIDR, `.domain`, `host[:port]`) covers `url`."""
    if "/" in rule:
        return bool(_in_network(url.host, rule))
    host, _, port = rule.partition(":") if rule.count(":") == 1 else (rule, "", "")
    host = host.removeprefix("*").removeprefix(".").strip("[]")
    return port in ("", str(url.port)) and (not host or url.host == host or url.host.endswith(f".{host}"))
