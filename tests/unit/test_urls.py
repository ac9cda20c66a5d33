"""URLs are read strictly: whom a credential goes to must not depend on who reads the text."""

from __future__ import annotations

import pytest

from execcred._urls import env_proxy, is_pattern, matches, parse_url, same_server, shown

GOOD = {
    "https://spoke.example": ("https", "spoke.example", 443, ""),
    "HTTPS://Spoke.Example:6443/": ("https", "spoke.example", 6443, "/"),
    "http://spoke:80/a/b": ("http", "spoke", 80, "/a/b"),
    "https://spoke:/x": ("https", "spoke", 443, "/x"),
    "https://10.0.0.1:6443": ("https", "10.0.0.1", 6443, ""),
    "https://[FD00::1]": ("https", "fd00::1", 443, ""),
    "https://[::1]:6443/p": ("https", "::1", 6443, "/p"),
    "https://under_score.example": ("https", "under_score.example", 443, ""),
    "https://xn--mnchen-3ya.example": ("https", "xn--mnchen-3ya.example", 443, ""),
}


@pytest.mark.parametrize("text", GOOD)
def test_a_plain_url_is_taken_apart(text: str) -> None:
    url = parse_url(text)
    assert (url.scheme, url.host, url.port, url.path) == GOOD[text]


def test_the_authority_brackets_an_ipv6_host() -> None:
    assert [parse_url(each).authority for each in ("https://a", "https://[::1]")] == ["a:443", "[::1]:443"]


def test_userinfo_is_kept_apart() -> None:
    url = parse_url("http://user:p%40ss@proxy:3128")
    assert [url.userinfo, url.authority] == ["user:p%40ss", "proxy:3128"]


PATTERNS = (
    "*",
    "spoke",
    "*.eks.amazonaws.com",
    "SPOKE.example:6443",
    "10.0.0.0/8",
    "fd00::/8",
    "10.0.*",
    "::1",
    "[::1]:6443",
)
NO_PATTERNS = (
    *("https://spoke.example", "spoke.example/path", "10.0.0.0/33", "10.0.0.0/8:443", "spoke:port", "spoke:0", ":6443"),
    *("spoke:65536", "a b", "user@spoke", "münchen.example", "[a-z].example", "", "fd00::g", "a:b:c"),
)


@pytest.mark.parametrize(
    ("text", "good"), [*[(each, True) for each in PATTERNS], *[(each, False) for each in NO_PATTERNS]]
)
def test_a_pattern_is_a_host_a_glob_or_a_cidr(text: str, good: bool) -> None:
    assert is_pattern(text) is good


HOSTILE = [
    "",
    "spoke.example",
    "//spoke.example",
    "https:/spoke.example",
    "https:spoke.example",
    "https://",
    "https:///path",
    "https://:443",
    "https://@",
    "ftp://spoke.example",
    "socks5://proxy:1080",
    "javascript://spoke.example",
    "https://evil.example\\@spoke.example",
    "https://evil.example\\.spoke.example",
    "https://spoke.example#@evil.example",
    "https://spoke.example?@evil.example/",
    "https://spoke.example?x",
    "https://spoke.example;x",
    "https://spoke.example,evil.example",
    "https://spoke.example%2eevil.example",
    "https://spoke.example%00.evil.example",
    "https://spoke\t.example",
    "https://spoke.example\n",
    " https://spoke.example",
    "https://spoke.example /x",
    "https://spoke.example\0",
    "https://münchen.example",
    "https://ｓｐｏｋｅ.example",
    "https://spoke。example",
    "https://١٢٧.0.0.1",
    "https://spoke:44３",
    "https://spoke:²",
    "https://spoke:0",
    "https://spoke:65536",
    "https://spoke:-1",
    "https://spoke:+443",
    "https://spoke:4_43",
    "https://spoke:443:443",
    "https://spoke:" + "9" * 5000,
    "https://::1",
    "https://[::1",
    "https://::1]",
    "https://[::1]x",
    "https://[::1]x:443",
    "https://[fe80::1%25eth0]",
    "https://[[::1]]",
    "https://[]",
    "https://[:::]",
    "https://[1.2.3.4]",
    "https://[spoke]",
    "https://.",
    "https://a..b",
    "https://.a",
    f"https://{'a' * 64}.example",
    f"https://{'a.' * 127}",
    "https://spoke.example/ü",
    "https://spoke.example/a b",
    "https://spoke.example/a#b",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_two_readers_could_read_differently_is_no_url_and_matches_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse_url(text)
    assert not matches(text, ["*", "0.0.0.0/0", "::/0"])
    assert not same_server(text, text)


MATCHES = [
    ("https://a.eks.amazonaws.com", "*.eks.amazonaws.com", True),
    ("https://A.b.EKS.amazonaws.com:443/x", "*.eks.amazonaws.com", True),
    ("https://a.eks.amazonaws.com.", "*.eks.amazonaws.com", True),
    ("https://a.eks.amazonaws.com", "*.EKS.amazonaws.com", True),
    ("https://eks.amazonaws.com", "*.eks.amazonaws.com", False),
    ("https://a.eks.amazonaws.com.evil.example", "*.eks.amazonaws.com", False),
    ("https://evileks.amazonaws.com", "*.eks.amazonaws.com", False),
    ("https://spoke", "spoke", True),
    ("https://spokes", "spoke", False),
    ("https://spoke1", "spoke?", True),
    ("https://a", "[a-z]", False),
    ("https://spoke:6443", "spoke", True),
    ("https://spoke:6443", "spoke:6443", True),
    ("https://spoke", "spoke:443", True),
    ("https://spoke", "spoke:6443", False),
    ("https://spoke", "*:443", True),
    ("https://10.1.2.3", "10.0.0.0/8", True),
    ("https://10.1.2.3", "10.9.9.9/8", True),
    ("https://11.1.2.3", "10.0.0.0/8", False),
    ("https://10.1.2.3:6443", "10.0.0.0/8:6443", True),
    ("https://10.1.2.3:443", "10.0.0.0/8:6443", False),
    ("https://10.evil.example", "10.0.0.0/8", False),
    ("https://10.1.2.3.evil.example", "10.0.0.0/8", False),
    ("https://012.1.2.3", "10.0.0.0/8", False),
    ("https://167838211", "10.0.0.0/8", False),
    ("https://0x0a010203", "10.0.0.0/8", False),
    ("https://10.1.2.3", "10.1.2.3", True),
    ("https://10.1.2.3:6443", "10.1.*", True),
    ("https://10.1.evil.example", "10.1.*", False),
    ("https://evil.example", "*.*", True),
    ("https://[fd00::1]", "fd00::/8", True),
    ("https://[fd00::1]:6443", "[fd00::/8]:6443", True),
    ("https://[fd00::1]:443", "[fd00::/8]:6443", False),
    ("https://[fe80::1]", "fd00::/8", False),
    ("https://[::ffff:10.1.2.3]", "10.0.0.0/8", False),
    ("https://[::1]", "::1", True),
    ("https://[::1]:6443", "[::1]:6443", True),
    ("https://[::1]:6443", "[::1]", True),
    ("https://10.1.2.3", "10.0.0.0/99", False),
    ("https://10.1.2.3", "nonsense/8", False),
    ("https://spoke", "spoke:²", False),
    ("https://spoke", "spoke:" + "9" * 5000, False),
    ("https://user@spoke", "spoke", False),
    ("https://user:pass@spoke", "*", False),
    ("http://spoke", "spoke", False),
]


@pytest.mark.parametrize(("url", "pattern", "fits"), MATCHES)
def test_a_server_is_allowed_by_glob_or_network_and_by_port_only_if_written(url: str, pattern: str, fits: bool) -> None:
    assert matches(url, [pattern]) is fits
    assert matches(url, ["nowhere", pattern]) is fits


def test_a_proxy_may_be_plain_http() -> None:
    assert matches("http://proxy:3128", ["proxy"], https=False)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://spoke", "https://spoke", True),
        ("https://spoke", "HTTPS://SPOKE:443/", True),
        ("https://[FD00::1]", "https://[fd00::1]:443", True),
        ("https://spoke/a", "https://spoke/a/", True),
        ("https://spoke/a", "https://spoke/A", False),
        ("https://spoke", "http://spoke", False),
        ("https://spoke", "https://spoke:6443", False),
        ("https://spoke", "https://spoke.example", False),
        ("https://spoke", "", False),
    ],
)
def test_two_urls_name_one_server_however_they_are_spelt(one: str, other: str, same: bool) -> None:
    assert same_server(one, other) is same
    assert same_server(other, one) is same


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://user:pass@spoke:6443/x?token=abc", "https://…@spoke:6443/x"),
        ("http://spoke/a/b", "http://spoke:80/a/b"),
        ("https://user:pass@spoke\n", "an invalid URL"),
        ("https://u:secret@spoke.examplehttps://u:secret@spoke", "https://…@spoke.examplehttps:443/…"),
        ("", "nothing"),
    ],
)
def test_a_url_is_shown_without_what_may_be_a_password(url: str, text: str) -> None:
    assert shown(url) == text


PROXY = {"HTTPS_PROXY": "http://proxy:3128"}
PROXIES = [
    ({}, "https://hub", ""),
    (PROXY, "https://hub", "http://proxy:3128"),
    ({"https_proxy": "http://proxy:3128"}, "https://hub", "http://proxy:3128"),
    ({"HTTPS_PROXY": "proxy:3128"}, "https://hub", "http://proxy:3128"),
    ({"HTTPS_PROXY": "", "https_proxy": ""}, "https://hub", ""),
    (PROXY, "https://localhost", ""),
    (PROXY, "https://127.0.0.2:6443", ""),
    (PROXY, "https://[::1]", ""),
    (PROXY, "https://127.evil.example", "http://proxy:3128"),
    ({**PROXY, "NO_PROXY": "*"}, "https://hub", ""),
    ({**PROXY, "NO_PROXY": "other, HUB "}, "https://hub", ""),
    ({**PROXY, "no_proxy": "hub"}, "https://hub", ""),
    ({**PROXY, "NO_PROXY": "hub"}, "https://a.hub", ""),
    ({**PROXY, "NO_PROXY": ".hub"}, "https://a.hub", ""),
    ({**PROXY, "NO_PROXY": "*.hub"}, "https://a.b.hub", ""),
    ({**PROXY, "NO_PROXY": "hub"}, "https://nohub", "http://proxy:3128"),
    ({**PROXY, "NO_PROXY": "hub:6443"}, "https://hub:6443", ""),
    ({**PROXY, "NO_PROXY": "hub:6443"}, "https://hub", "http://proxy:3128"),
    ({**PROXY, "NO_PROXY": "10.0.0.0/8"}, "https://10.1.1.1", ""),
    ({**PROXY, "NO_PROXY": "10.0.0.0/8"}, "https://11.1.1.1", "http://proxy:3128"),
    ({**PROXY, "NO_PROXY": "10.0.0.0/8"}, "https://ten", "http://proxy:3128"),
    ({**PROXY, "NO_PROXY": "fd00::/8"}, "https://[fd00::1]", ""),
    ({**PROXY, "NO_PROXY": "[fd00::1]"}, "https://[fd00::1]", ""),
    ({**PROXY, "NO_PROXY": "fd00::1"}, "https://[fd00::1]:6443", ""),
    ({**PROXY, "NO_PROXY": "nonsense/x,,"}, "https://hub", "http://proxy:3128"),
]


@pytest.mark.parametrize(("variables", "url", "proxy"), PROXIES)
def test_the_environment_chooses_the_proxy(variables: dict[str, str], url: str, proxy: str) -> None:
    assert env_proxy(parse_url(url), variables) == proxy
