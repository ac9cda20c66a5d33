"""The rows of the cloud plugins, their cache and the images: stand-ins answer after 50 ms, one for each side.

What was asked of a stand-in is counted: the runs of a row, and the one that warms it up.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Self

from image import unpack
from rows import READERS, Command, Row
from standins import StandIn, answer_json, authority

from execcred import Env
from execcred._run import respond
from execcred_eks import PLUGIN as EKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rows import World

DELAY = 0.05
REGION = "eu-west-1"
STS = f"sts.{REGION}.amazonaws.com"
ROLE = "arn:aws:iam::111122223333:role/"
TENANT = "11111111-2222-3333-4444-555555555555"
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
FLEET_RUNS = 3  # at most, of 300 processes each
# Of upstream's secretreader, a Go binary: how large an unpacked image may be.
SIZES = {"secretreader": 0.62, "kubeconfig-secretreader": 0.62, "eks": 1.35, "gke": 1.35, "aks": 1.35}
UPSTREAM_BYTES = 43_434_146  # upstream's secretreader, where it was not built


def jwt(**claims: object) -> str:
    """Return a token that nobody could verify."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)]
    return ".".join([*parts, "c2ln"])


class Clouds:
    """The rows; a context manager that ends its stand-ins."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.folder = world.folder / "clouds"
        self.folder.mkdir()
        ca, self.tls = authority("127.0.0.1", "localhost", STS)
        (self.folder / "ca.pem").write_text(ca)
        self.ca = str(self.folder / "ca.pem")
        self.home = str(self.folder / "home")
        os.mkdir(self.home)
        self.open: list[StandIn] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.open:
            each.close()

    def rows(self) -> Iterator[Row]:
        """Give every row."""
        yield from self.eks()
        yield from self.gke()
        yield from self.aks()
        yield from self.fleet()
        yield from self.images()

    # --- what rows are made of ---

    def fresh(self, name: str) -> str:
        """Return the name of a directory that each run finds new and empty."""
        os.makedirs(self.folder / name, exist_ok=True)
        return f"{self.folder}/{name}/{{pid}}"

    def stand_in(self, answer: Callable[[str, str], tuple[int, str, str]], *, tls: bool, proxied: bool) -> StandIn:
        """Return a new server that answers after the delay."""
        self.open.append(StandIn(answer, self.tls if tls else None, DELAY, proxied=proxied))
        return self.open[-1]

    def calls(self, ours: StandIn, theirs: StandIn, most: int, runs: int = 0) -> Callable[[], tuple[str, bool]]:
        """Return what tells the calls of one run, and whether ours made at most so many."""

        def told() -> tuple[str, bool]:
            mine, other = [len(each.requests) / ((runs or self.world.runs) + 1) for each in (ours, theirs)]
            return f"{mine:g} calls (≤ {most}), peer {other:g}", 0 < mine <= most

        return told

    def hit(self, plugin: str, arguments: list[str], env: dict[str, str], cloud: StandIn) -> Row:
        """Return the row of a cache that the first run fills."""
        cache = str(self.folder / f"cache-{plugin}")
        ours = Command([*self.world.plugin(plugin), *arguments, "--cache-dir", cache], env)

        def fetched_once() -> tuple[str, bool]:
            return f"{len(cloud.requests)} call in {self.world.runs + 1} runs (1)", len(cloud.requests) == 1

        return Row(f"{plugin}, cache hit", ours, "bare", None, 2.8, other=fetched_once)

    # --- eks ---

    def sts(self) -> tuple[StandIn, dict[str, str]]:
        """Return an STS behind a proxy, as the peer's SDK has no other way to it, and the environment that uses it."""
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        keys = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "SessionToken": "t" * 400, "Expiration": end}
        fields = "".join([f"<{name}>{text}</{name}>" for name, text in keys.items()])
        user = f"<AssumedRoleUser><Arn>{ROLE}r</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>"
        result = f"<AssumeRoleResult><Credentials>{fields}</Credentials>{user}</AssumeRoleResult>"
        text = f'<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">{result}</AssumeRoleResponse>'
        server = self.stand_in(lambda _line, _body: (200, "text/xml", text), tls=True, proxied=True)
        proxy = {"HTTPS_PROXY": f"http://127.0.0.1:{server.port}", "AWS_CA_BUNDLE": self.ca}
        return server, {**self.keys(), **proxy}

    def keys(self) -> dict[str, str]:
        """Return static keys, and a home without any configuration."""
        return {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s", "HOME": self.home}

    def eks(self) -> Iterator[Row]:
        """Static keys, one role, and a cached session."""
        ours, name = self.world.plugin("eks"), "aws-iam-authenticator"
        peer = self.world.go(name)
        arguments = ["token", "-i", "demo", "--region", REGION]
        theirs = Command([peer, *arguments], self.keys()) if peer else None
        mine = Command([*ours, *arguments], self.keys())
        yield Row("eks, static keys, cold", mine, name, theirs, 2.2, 0.7)
        cli = self.world.root / ".cache" / "awscli" / "bin" / "aws"
        words = ["eks", "get-token", "--cluster-name", "demo", "--region", REGION]
        theirs = Command([str(cli), *words], self.keys()) if cli.exists() else None
        yield Row("eks, static keys, cold", Command([*ours, *words], self.keys()), "aws eks get-token", theirs, 0.1)
        (sts, env), (other_sts, other_env) = self.sts(), self.sts()
        arguments += ["-r", ROLE + "r"]
        theirs = Command([peer, *arguments], other_env) if peer else None
        calls = self.calls(sts, other_sts, 1)
        yield Row("eks, one AssumeRole, cold", Command([*ours, *arguments], env), f"{name} -r", theirs, 2.2, 1.5, calls)
        sts, env = self.sts()
        yield self.hit("eks", arguments, env, sts)

    # --- gke ---

    def gke(self) -> Iterator[Row]:
        """The metadata server, and a cached token."""
        name = "gke-gcloud-auth-plugin"
        arguments = ["--use_application_default_credentials"]
        (metadata, env), (other, other_env) = self.metadata(), self.metadata()
        peer = shutil.which(name)
        theirs = Command([peer, *arguments], other_env) if peer else None
        ours = Command([*self.world.plugin("gke"), *arguments], env)
        calls = self.calls(metadata, other, 2)
        yield Row("gke, metadata server, cold", ours, f"{name} with ADC", theirs, 2.4, other=calls)
        metadata, env = self.metadata()
        yield self.hit("gke", arguments, env, metadata)

    def metadata(self) -> tuple[StandIn, dict[str, str]]:
        """Return a metadata server and the environment that leads to it."""
        token = answer_json({"access_token": "ya29." + "t" * 200, "expires_in": 3599, "token_type": "Bearer"})
        server = self.stand_in(
            lambda line, body: token(line, body) if "/token" in line else (200, "text/plain", "project"),
            tls=False,
            proxied=False,
        )
        return server, {"GCE_METADATA_HOST": f"127.0.0.1:{server.port}", "HOME": self.home}

    # --- aks ---

    def aks(self) -> Iterator[Row]:
        """Workload identity; kubelogin keeps tokens in its home without being asked, so each run gets a new one."""
        arguments = ["get-token", "--login", "workloadidentity", "--server-id", AKS, "--disable-instance-discovery"]
        (entra, env), (other, other_env) = self.entra(), self.entra()
        peer = self.world.go("kubelogin")
        theirs = Command([peer, *arguments], {**other_env, "HOME": self.fresh("kubelogin")}) if peer else None
        ours = Command([*self.world.plugin("aks"), *arguments], env)
        calls = self.calls(entra, other, 2)
        name = "kubelogin, its cache empty"
        yield Row("aks, workload identity, cold", ours, name, theirs, 1.8, 1.5, calls)
        entra, env = self.entra()
        yield self.hit("aks", arguments, env, entra)

    def entra(self) -> tuple[StandIn, dict[str, str]]:
        """Return an Entra ID and the environment of a pod with a workload identity."""
        end = int(time.time()) + 86400
        token = {"access_token": jwt(aud=AKS, exp=end, tid=TENANT), "expires_in": 3599, "token_type": "Bearer"}
        grant = answer_json(token)

        def answer(line: str, body: str) -> tuple[int, str, str]:
            base = f"https://localhost:{server.port}/{TENANT}"
            urls = {"token_endpoint": f"{base}/oauth2/v2.0/token", "authorization_endpoint": f"{base}/authorize"}
            described = answer_json({"issuer": f"{base}/v2.0", **urls})
            return (grant if line.startswith("POST") else described)(line, body)

        server = self.stand_in(answer, tls=True, proxied=False)
        file = self.folder / "federated"
        file.write_text(jwt(iss="https://oidc.test", sub="bench", aud=["api://AzureADTokenExchange"], exp=end))
        return server, {
            "AZURE_AUTHORITY_HOST": f"https://localhost:{server.port}/",
            "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
            "AZURE_FEDERATED_TOKEN_FILE": str(file),
            "SSL_CERT_FILE": self.ca,
            "HOME": self.home,
        }

    # --- fleets ---

    def fleet(self) -> Iterator[Row]:
        """Many clusters: all at once, and one more when the cache has served few or many."""
        (sts, env), (other_sts, other_env) = self.sts(), self.sts()
        ours, peer = self.world.plugin("eks"), self.world.go("aws-iam-authenticator")
        arguments = ["token", "-i", "cluster-%", "--region", REGION, "-r", ROLE + "r"]

        def at_once(command: list[str]) -> list[str]:
            return ["/bin/sh", "-c", 'seq 300 | xargs -P 8 -I % "$@"', "sh", *command]

        env = {**env, "PATH": "/usr/bin:/bin"}
        mine = Command(at_once([*ours, *arguments]), {**env, "EXECCRED_CACHE_DIR": self.fresh("fleet")})
        other_env = {**other_env, "PATH": "/usr/bin:/bin"}
        theirs = Command(at_once([peer, *arguments]), other_env) if peer else None
        runs = min(FLEET_RUNS, self.world.runs)
        calls = self.calls(sts, other_sts, 1, runs)
        what = "eks, 300 clusters, one role, 8 at a time, cache on"
        yield Row(what, mine, "aws-iam-authenticator -r", theirs, 0.8, other=calls, runs=runs)
        yield self.one_more("one more cluster of a cached role", shared=True)
        yield self.one_more("one more cluster with a role of its own", shared=False)

    def one_more(self, what: str, *, shared: bool) -> Row:
        """Return the row of one more credential where a cache has served 1,000 clusters, against 30."""
        commands, servers = [], []
        for clusters in (1000, 30):
            sts, env = self.sts()
            cache = str(self.folder / f"{clusters}-{shared}")
            arguments = ["token", "--region", REGION, "--cache-dir", cache]
            sts.delay = 0
            for number in range(clusters):
                role = ROLE + ("r" if shared else str(number))
                respond(EKS, [*arguments, "-i", f"cluster-{number}", "-r", role], Env(env))
            sts.delay = DELAY
            sts.requests.clear()
            more = ["-i", "more", "-r", ROLE + ("r" if shared else "more-{pid}")]
            commands.append(Command([*self.world.plugin("eks"), *arguments, *more], env))
            servers.append(sts)
        fetches = 0 if shared else 1

        def told() -> tuple[str, bool]:
            calls = [len(each.requests) / (self.world.runs + 1) for each in servers]
            return f"{calls[0]:g} calls ({fetches})", calls == [fetches, fetches]

        return Row(f"eks, {what}, at 1,000", commands[0], "ours at 30", commands[1], 1.25, other=told)

    # --- images ---

    def images(self) -> Iterator[Row]:
        """Each image's launcher against the zipapp on the system's Python, and the size of its tree."""
        upstream = self.world.go("upstream-secretreader")
        peer_size = os.stat(upstream).st_size if upstream else UPSTREAM_BYTES
        for plugin, most in SIZES.items():
            archive = self.world.root / "dist" / "images" / f"{plugin}.oci.tar"
            if not archive.exists():
                continue
            tree = self.folder / "images" / plugin
            told = self.size(unpack(archive, tree), peer_size, most)
            launcher, zipapp = [str(tree / "bin" / f"{plugin}-plugin")], self.world.plugin(plugin)
            version = [Command([*command, "--version"], {}) for command in (launcher, zipapp)]
            yield Row(f"image, {plugin}, --version", version[0], "the zipapp", version[1], 1.05, other=told)
            if plugin == "secretreader":
                yield from self.world.starts(launcher, "image, ")
            if plugin in READERS:
                ours, theirs = [Command(command, self.world.reader_env(plugin)) for command in (launcher, zipapp)]
                yield Row(f"image, {plugin}, kubeconfig", ours, "the zipapp", theirs, 1.05)
                yield from self.world.reader(plugin, launcher, "image, ")

    def size(self, ours: int, theirs: int, most: float) -> Callable[[], tuple[str, bool]]:
        """Return what tells the size of an unpacked image against upstream's Go binary."""

        def told() -> tuple[str, bool]:
            ratio = ours / theirs
            return f"unpacked {ours / 1e6:.1f} of {theirs / 1e6:.1f} MB: {ratio:.2f}× ({most}×)", ratio <= most

        return told
