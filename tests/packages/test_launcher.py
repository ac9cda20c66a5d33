"""The image's tree starts from anywhere, whatever the container's environment, and says what is wrong with it."""

from __future__ import annotations

import base64
import json
import struct
import sys
from typing import TYPE_CHECKING

import pytest

from packages.built import PATHS, TOKEN, copied, in_namespace, run

if TYPE_CHECKING:
    from pathlib import Path

NAME = "secretreader-plugin"
Asking = tuple[str, ...]


def launcher(tree: Path) -> Path:
    return tree / "bin" / NAME


@pytest.mark.parametrize(
    "name", ["with space", "ünïcödé-盘", "per%cent", 'quo"te', "back\\slash", "d" * 200, "-dash", "a=b"]
)
def test_it_starts_from_a_mount_path_with(name: str, tree: Path, tmp_path: Path, asking: Asking) -> None:
    mounted = copied(tree, tmp_path / name)
    assert run([launcher(mounted), *asking]) == (0, TOKEN + "\n", "")


@pytest.mark.parametrize("name", ["a:b", "a;b", "$ORIGIN", "a\nb"])
def test_it_refuses_a_mount_path_that_the_loader_would_take_apart(name: str, tree: Path, tmp_path: Path) -> None:
    mounted = copied(tree, tmp_path / name)
    result = run([launcher(mounted), "--version"])
    assert (result.status, result.code) == (1, "mount-path")


def test_it_starts_through_links_and_path(tree: Path, tmp_path: Path, asking: Asking) -> None:
    link, chain = tmp_path / "link", tmp_path / "renamed"
    link.symlink_to(launcher(tree))
    chain.symlink_to("link")
    relative = tree.parent
    for command in ([link], [chain], [f"./{tree.name}/bin/{NAME}"], [f"./{tree.name}/bin/../bin/{NAME}"]):
        assert run([*command, *asking], cwd=relative) == (0, TOKEN + "\n", "")
    found = run(["env", f"PATH={tree}/bin", NAME, *asking], PATHS)
    assert found == (0, TOKEN + "\n", "")


@pytest.mark.parametrize("name", ["", "x", "/usr/bin/python3", "a\nb", "../../etc"])
def test_it_does_not_believe_the_name_it_was_called_by(name: str, tree: Path, asking: Asking) -> None:
    assert run([name, *asking], executable=launcher(tree)) == (0, TOKEN + "\n", "")


HOSTILE = {
    "LD_PRELOAD": "/nonexistent/preload.so",
    "LD_LIBRARY_PATH": "/nonexistent:.",
    "LD_AUDIT": "/nonexistent/audit.so",
    "LD_DEBUG": "all",
    "PYTHONPATH": "/nonexistent",
    "PYTHONHOME": "/nonexistent",
    "PYTHONSTARTUP": "/nonexistent",
    "PYTHONINSPECT": "1",
    "PYTHONVERBOSE": "1",
    "PYTHONMALLOC": "nonsense",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "GCONV_PATH": "/nonexistent",
    "LOCPATH": "/nonexistent",
    "OPENSSL_CONF": "/nonexistent",
    "OPENSSL_MODULES": "/nonexistent",
    "OPENSSL_ENGINES": "/nonexistent",
}


@pytest.mark.parametrize("name", [*HOSTILE, "all"])
def test_it_is_deaf_to_the_containers(name: str, tree: Path, asking: Asking) -> None:
    variables = HOSTILE if name == "all" else {name: HOSTILE[name]}
    assert run([launcher(tree), *asking], variables) == (0, TOKEN + "\n", "")


def test_an_openssl_configuration_that_breaks_openssl_is_not_read(tree: Path, tmp_path: Path, asking: Asking) -> None:
    broken = tmp_path / "openssl.cnf"
    broken.write_text("openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nMaxProtocol = TLSv1.0\n")
    assert run([launcher(tree), *asking], {"OPENSSL_CONF": str(broken)}) == (0, TOKEN + "\n", "")


def test_it_starts_without_proc(tree: Path, tmp_path: Path, asking: Asking) -> None:
    link = tmp_path / "link"
    link.symlink_to(launcher(tree))
    for start in (launcher(tree), link):
        command = in_namespace('mount -t tmpfs none /proc; exec "$@"', start, *asking)
        assert run(command, PATHS) == (0, TOKEN + "\n", "")


def test_without_proc_it_says_when_it_cannot_find_itself(tree: Path) -> None:
    """Started by a descriptor: the kernel then names a path below /proc."""
    script = "import os, sys; os.execve(os.open(sys.argv[1], os.O_RDONLY), ['x', '--version'], {})"
    start = in_namespace('mount -t tmpfs none /proc; exec "$@"', sys.executable, "-c", script, launcher(tree))
    result = run(start, PATHS)
    assert (result.status, result.code) == (1, "self-unknown")


def in_an_empty_root(tree: Path, folder: Path, asking: Asking) -> tuple[Path, list[str]]:
    """Return a root that is the image's tree with an empty /dev/null and the hub's kubeconfig, and the start in it."""
    root = copied(tree, folder / "root")
    (root / "dev").mkdir()
    (root / "dev/null").touch()
    (root / "hub.json").write_bytes((folder / "hub.json").read_bytes())
    words = ["/hub.json" if word.endswith("hub.json") else word for word in asking]
    return root, in_namespace('exec chroot "$@"', root, f"/bin/{NAME}", *words)


def test_it_needs_nothing_of_the_container(tree: Path, tmp_path: Path, asking: Asking) -> None:
    """No libc, shell, /proc or /tmp."""
    _, command = in_an_empty_root(tree, tmp_path, asking)
    assert run(command, PATHS) == (0, TOKEN + "\n", "")


CA_BUNDLES = [
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/ssl/ca-bundle.pem",
    "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "etc/ssl/cert.pem",
    f"lib/{NAME}/etc/ca-certificates.crt",
]


@pytest.mark.parametrize(
    ("place", "variables"),
    [*[(place, {}) for place in CA_BUNDLES], (CA_BUNDLES[-1], {"SSL_CERT_FILE": ""}), ("ca", {"SSL_CERT_FILE": "/ca"})],
)
def test_it_trusts_the_ca_certificates_in(
    place: str, variables: dict[str, str], tree: Path, tmp_path: Path, asking: Asking
) -> None:
    """The container's, wherever they are or are said to be, else the image's; the hub's kubeconfig names none."""
    root, command = in_an_empty_root(tree, tmp_path, asking)
    kubeconfig = json.loads((root / "hub.json").read_text())
    ca = base64.b64decode(kubeconfig["clusters"][0]["cluster"].pop("certificate-authority-data"))
    (root / "hub.json").write_text(json.dumps(kubeconfig))
    assert run(command, {**PATHS, **variables}).code == "hub-tls"
    (root / place).unlink(missing_ok=True)
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).write_bytes(ca)
    assert run(command, {**PATHS, **variables}) == (0, TOKEN + "\n", "")


def test_alone_it_says_what_is_missing(tree: Path, tmp_path: Path) -> None:
    alone = tmp_path / "bin" / NAME
    alone.parent.mkdir()
    alone.write_bytes(launcher(tree).read_bytes())
    alone.chmod(0o555)
    result = run([alone, "--version"])
    assert (result.status, result.code) == (1, "tree-incomplete")
    assert f"{tmp_path}/lib/{NAME}/rt/ld.so is missing" in result.err
    assert "install DIR" in result.err


@pytest.mark.parametrize(
    "part",
    [
        "rt",
        "app",
        "rt/ld.so",
        "rt/bin/python3.11",
        "rt/lib/libc.so.6",
        "rt/lib/python3.11/encodings",
        "app/__main__.pyc",
    ],
)
def test_with_half_a_tree_it_says_what_is_missing(part: str, tree: Path, tmp_path: Path) -> None:
    half = copied(tree, tmp_path / "half")
    (half / "lib" / NAME / part).rename(tmp_path / "gone")
    result = run([launcher(half), "--version"])
    assert (result.status, result.code) == (1, "tree-incomplete")


@pytest.mark.parametrize(
    "part", ["rt/lib/python3.11/encodings/utf_8.py", "app/execcred", "app/execcred_secretreader.py"]
)
def test_any_other_hole_fails_without_an_answer(part: str, tree: Path, tmp_path: Path) -> None:
    half = copied(tree, tmp_path / "half")
    path = half / "lib" / NAME / part
    path.rename(tmp_path / "gone")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()
    result = run([launcher(half), "--version"])
    assert result.status
    assert not result.out
    assert result.err


def test_a_loader_for_another_processor_is_named(tree: Path, tmp_path: Path) -> None:
    mixed = copied(tree, tmp_path / "mixed")
    loader = mixed / "lib" / NAME / "rt/ld.so"
    content = bytearray(loader.read_bytes())
    struct.pack_into("<H", content, 18, 0xFEFE)  # ELF's e_machine: nobody's, so that no emulator takes it
    loader.chmod(0o755)
    loader.write_bytes(content)
    result = run([launcher(mixed), "--version"])
    assert (result.status, result.code) == (1, "wrong-architecture")


def test_a_loader_that_lost_its_mode_is_named(tree: Path, tmp_path: Path) -> None:
    copy = copied(tree, tmp_path / "copy")
    (copy / "lib" / NAME / "rt/ld.so").chmod(0o444)
    result = run([launcher(copy), "--version"])
    assert (result.status, result.code) == (1, "not-executable")


def test_a_loader_that_is_just_being_written_is_named(tree: Path, tmp_path: Path) -> None:
    copy = copied(tree, tmp_path / "copy")
    loader = copy / "lib" / NAME / "rt/ld.so"
    loader.chmod(0o755)
    with loader.open("r+b"):
        result = run([launcher(copy), "--version"])
    assert (result.status, result.code) == (1, "start-failed")
    assert "rt/ld.so: Text file busy [" in result.err
