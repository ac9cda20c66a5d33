"""The images: what the specification asks, what a read-only volume needs, what scanners look for, on both machines."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import ssl
import stat
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from execcred import __version__
from packages.built import (
    DIST,
    HOST,
    PLUGINS,
    READERS,
    ROOT,
    TOKEN,
    OciImage,
    emulated,
    emulated_python,
    image,
    python_of,
    run,
    sources,
)

if TYPE_CHECKING:
    import tarfile

ARCHITECTURES = ("amd64", "arm64")
BOTH = [(plugin, architecture) for plugin in PLUGINS for architecture in ARCHITECTURES]
GO_BINARY = 43e6  # upstream's secretreader, bytes


def members(plugin: str, architecture: str) -> dict[str, tarfile.TarInfo]:
    with image(plugin).layer(architecture) as layer:
        return {member.name: member for member in layer}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_blob_is_what_its_descriptor_says(plugin: str) -> None:
    archive = image(plugin)
    for name, content in archive.files.items():
        if name.startswith("blobs/"):
            assert hashlib.sha256(content).hexdigest() == PurePosixPath(name).name
    assert json.loads(archive.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert len(archive.top["manifests"]) == 1
    for architecture in ARCHITECTURES:
        manifest = archive.manifest(architecture)
        for entry in (manifest["config"], *manifest["layers"]):
            assert len(archive.raw(entry["digest"])) == entry["size"]
        layer = gzip.decompress(archive.raw(manifest["layers"][0]["digest"]))
        assert archive.config(architecture)["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_the_config_starts_the_plugin_as_nobody_with_nothing_but_path(plugin: str, architecture: str) -> None:
    config = image(plugin).config(architecture)
    assert (config["architecture"], config["os"]) == (architecture, "linux")
    settings = config["config"]
    assert settings["User"] == "65532:65532"
    assert settings["Env"] == ["PATH=/bin"]
    assert settings["Entrypoint"] == [f"/bin/{plugin}-plugin"]
    named = [settings["Labels"][f"org.opencontainers.image.{label}"] for label in ("title", "version")]
    assert named == [f"{plugin}-plugin", __version__]
    assert {name.rpartition(".")[2] for name in settings["Labels"]} >= {"title", "description", "version", "licenses"}


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_the_tree_holds_nothing_that_others_could_use(plugin: str, architecture: str) -> None:
    """Nothing writable by others, setuid, setgid, linked or special; all of root's, of one time."""
    found = members(plugin, architecture)
    assert len({member.mtime for member in found.values()}) == 1
    for member in found.values():
        assert member.isreg() or member.isdir(), member.name
        assert member.mode == 0o755 if member.isdir() else member.mode in (0o444, 0o555), member.name
        assert (member.uid, member.gid) == (0, 0)
        assert not member.name.startswith(("/", ".."))
    executable = {member.name for member in found.values() if member.isreg() and member.mode == 0o555}
    home = f"lib/{plugin}-plugin"
    assert executable == {f"bin/{plugin}-plugin", f"{home}/rt/ld.so", f"{home}/rt/bin/python3.11"}


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_the_tree_is_small_enough(plugin: str, architecture: str) -> None:
    size = sum(member.size for member in members(plugin, architecture).values())
    assert size <= GO_BINARY * (0.62 if plugin in READERS else 1.35)


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_every_source_has_its_bytecode_and_no_bytecode_is_alone(plugin: str, architecture: str) -> None:
    names = set(members(plugin, architecture))
    sources = {PurePosixPath(name) for name in names if name.endswith(".py")}
    compiled = {path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc" for path in sources}
    main = f"lib/{plugin}-plugin/app/__main__"
    expected = {str(path) for path in compiled} - {f"lib/{plugin}-plugin/app/__pycache__/__main__.cpython-311.pyc"}
    assert {name for name in names if name.endswith(".pyc")} == expected | {f"{main}.pyc"}


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_bytecode_needs_no_check_of_its_source_and_names_no_path_of_the_builder(plugin: str, architecture: str) -> None:
    with image(plugin).layer(architecture) as layer:
        for member in layer:
            file = layer.extractfile(member)
            content = file.read() if file else b""
            assert str(ROOT).encode() not in content, member.name
            if member.name.endswith(".pyc"):
                assert content[4:8] == b"\1\0\0\0", f"{member.name} is not unchecked-hash"


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_architectures_hold_the_same_python(plugin: str) -> None:
    """Only machine code, the platform's own modules, and what lists packages may differ."""
    one, other = [layer_texts(plugin, architecture) for architecture in ARCHITECTURES]
    differing = {name for name in one.keys() & other.keys() if one[name] != other[name]}
    home = f"lib/{plugin}-plugin"
    python = {name for name in differing if name.endswith((".py", ".pyc"))}
    assert {name for name in python if "_sysconfigdata" not in name} == set()
    assert {
        name for name in one.keys() ^ other.keys() if name.endswith(".py") and "_sysconfigdata" not in name
    } == set()
    assert f"{home}/rt/bin/python3.11" in differing


def layer_texts(plugin: str, architecture: str) -> dict[str, bytes]:
    with image(plugin).layer(architecture) as layer:
        return {member.name: file.read() for member in layer if (file := layer.extractfile(member))}


def without_tags(names: set[str]) -> set[str]:
    """Return names of machine code without what differs between architectures."""
    return {name.partition(".cpython-")[0] for name in names if ".so" in name and "/rt/ld.so" not in name}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_no_extension_module_was_lost_on_one_architecture(plugin: str) -> None:
    one, other = [without_tags(set(members(plugin, architecture))) for architecture in ARCHITECTURES]
    assert {name for name in one ^ other if "/libffi-" not in name} == set()


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_the_ca_bundle_is_one_that_openssl_reads(plugin: str, architecture: str) -> None:
    text = layer_texts(plugin, architecture)[f"lib/{plugin}-plugin/etc/ca-certificates.crt"].decode()
    found = ssl.create_default_context(cadata=text).cert_store_stats()
    assert found["x509_ca"] == found["x509"] == text.count("BEGIN CERTIFICATE") > 100


# --- what the pruning may not break ---

IMPORT_ALL = """
import importlib, os, sys, warnings
warnings.simplefilter("ignore")
app = sys.argv[1]
sys.path.insert(0, app)
failed = []
for folder, folders, files in sorted(os.walk(app)):
    for file in sorted(files):
        if file.endswith(".py") and file not in ("__main__.py", "__init__.py"):
            name = os.path.relpath(os.path.join(folder, file), app)[:-3].replace(os.sep, ".")
            if name.startswith(("execcred_install", "urllib3.contrib.emscripten")):
                continue
            try:
                importlib.import_module(name)
            except BaseException as error:
                failed.append(f"{name}: {type(error).__name__}: {error}")
print("\\n".join(failed))
"""


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_module_that_the_whole_interpreter_imports_the_pruned_one_imports_too(
    plugin: str, trees: dict[str, Path]
) -> None:
    script = "import build; print(*build.interpreter(), sep='\\n')"
    told = run([sys.executable, "-c", script], {"PYTHONPATH": str(ROOT / "images")})
    home = trees[plugin] / "lib" / f"{plugin}-plugin"
    results = [
        run([*python, "-c", IMPORT_ALL, home / "app"], timeout=600)
        for python in (told.out.splitlines(), python_of(home))
    ]
    assert [result.status for result in results] == [0, 0], results
    assert results[0].out == results[1].out


# --- the software bill of materials ---


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_the_bill_of_materials_is_valid_and_names_every_part(plugin: str, architecture: str, tmp_path: Path) -> None:
    texts = layer_texts(plugin, architecture)
    inside = texts[f"lib/{plugin}-plugin/sbom.spdx.json"]
    beside = DIST / "images" / f"{plugin}-{architecture}.spdx.json"
    assert beside.read_bytes() == inside
    document = parse_file(str(beside))
    assert validate_full_spdx_document(document) == []
    locators = {reference.locator for package in document.packages for reference in package.external_references}
    named = {locator.partition("?")[0].removeprefix("pkg:") for locator in locators}
    for part in ("libc6", "libssl3", "python3.11-minimal", "zlib1g", "ca-certificates"):
        assert any(name.startswith(f"deb/debian/{part}@") for name in named), part
    wheels = {PurePosixPath(name).parent.name for name in texts if name.endswith(".dist-info/METADATA")}
    for wheel in wheels:
        name, _, version = wheel.removesuffix(".dist-info").rpartition("-")
        assert f"pypi/{name.replace('_', '-').lower()}@{version}" in named
    if plugin in ("gke", "aks"):
        assert any(name.startswith("generic/openssl@") for name in named), "cryptography carries its own OpenSSL"


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_scanners_find_the_distribution_and_its_packages(plugin: str, architecture: str) -> None:
    texts = layer_texts(plugin, architecture)
    assert b'ID=debian\nVERSION_ID="12"' in texts["etc/os-release"]
    status = {name: text.decode() for name, text in texts.items() if name.startswith("var/lib/dpkg/status.d/")}
    for package in ("libc6", "libssl3", "python3.11-minimal", "libpython3.11-stdlib"):
        fields = dict(
            line.split(": ", 1) for line in status[f"var/lib/dpkg/status.d/{package}"].splitlines() if ": " in line
        )
        assert fields["Package"] == package
        assert fields["Architecture"] == architecture
        assert fields["Version"]


@pytest.mark.parametrize(("plugin", "architecture"), BOTH)
def test_every_part_comes_with_its_licence(plugin: str, architecture: str) -> None:
    texts = layer_texts(plugin, architecture)
    licences = f"lib/{plugin}-plugin/licenses"
    for package in [name.rpartition("/")[2] for name in texts if name.startswith("var/lib/dpkg/status.d/")]:
        assert texts[f"{licences}/{package}/copyright"]
    assert texts[f"{licences}/execcred/LICENSE"]
    assert texts[f"{licences}/musl/COPYRIGHT"]
    for info in {name.rpartition("/")[0] for name in texts if name.endswith(".dist-info/METADATA")}:
        assert any(name.startswith(f"{info}/") and "licen" in name.lower() for name in texts), info


# --- the other architecture, emulated ---


@pytest.mark.skipif(HOST != "amd64", reason="arm64 is emulated on amd64")
@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_arm64_tree_runs(plugin: str, tmp_path: Path, asking: tuple[str, ...]) -> None:
    """The launcher cannot start its loader without binfmt, so it is called by hand, and asked up to that point."""
    tree = image(plugin).unpack("arm64", tmp_path / "tree")
    home = tree / "lib" / f"{plugin}-plugin"
    start = emulated(tree, plugin)
    assert run([*start, "--version"]).out.startswith(f"{plugin}-plugin ")
    assert run([*start, "--help"]).out.startswith(f"usage: {plugin}-plugin")
    if plugin == "secretreader":
        assert run([*start, *asking, "--timeout", "60"]) == (0, TOKEN + "\n", "")
    native = {
        "gke": "cryptography.hazmat.bindings._rust",
        "aks": "cryptography.hazmat.bindings._rust",
        "eks": "botocore.session",
    }
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import ssl, hashlib, {native.get(plugin, 'yaml')}"
    assert run([*emulated_python(home), "-c", code, home / "app"]) == (0, "", "")
    (home / "rt/ld.so").rename(tmp_path / "gone")
    result = run([start[0], tree / f"bin/{plugin}-plugin", "--version"])
    assert (result.status, result.code) == (1, "tree-incomplete")


@pytest.mark.skipif(HOST != "amd64", reason="arm64 is emulated on amd64")
def test_the_arm64_interpreter_would_compile_the_same_bytecode(tmp_path: Path) -> None:
    home = image("secretreader").unpack("arm64", tmp_path / "tree") / "lib/secretreader-plugin"
    code = """
import marshal, os, sys
folders = [sys.argv[1] + "/app/execcred", sys.argv[1] + "/rt/lib/python3.11"]
sources = [f"{folder}/{name}" for folder in folders for name in sorted(os.listdir(folder)) if name.endswith(".py")][:60]
for path in sources:
    folder, name = os.path.split(path)
    with open(path, "rb") as source, open(f"{folder}/__pycache__/{name[:-3]}.cpython-311.pyc", "rb") as compiled:
        same = compile(source.read(), "x", "exec", dont_inherit=True) == marshal.loads(compiled.read()[16:])
        print(path if not same else "", end="")
print(len(sources) > 30)
"""
    assert run([*emulated_python(home), "-c", code, home]) == (0, "True\n", "")


# --- the build ---


def test_an_image_built_elsewhere_is_the_same_file(tmp_path: Path) -> None:
    """Built from a copy in another folder with another umask, zone, locale and hash seed; digests and bytes."""
    elsewhere = sources(tmp_path / "elsewhere")
    (elsewhere / ".cache/images/zig").symlink_to(ROOT / ".cache/images/zig")
    variables = {**os.environ, "DIST": str(tmp_path / "dist"), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    done = run([sys.executable, elsewhere / "images/build.py", "secretreader"], variables, umask=0o077, timeout=600)
    assert done.status == 0, done.err
    built = tmp_path / "dist/images/secretreader.oci.tar"
    assert OciImage(built).top == image("secretreader").top, "rebuild dist with: make images"
    assert built.read_bytes() == (DIST / "images/secretreader.oci.tar").read_bytes()


def build_with(tmp_path: Path, change: str) -> str:
    """Build an image in a copy of the sources after `change`, a line of Python there; return the error text."""
    elsewhere = sources(tmp_path / "elsewhere")
    subprocess.run([sys.executable, "-c", f"import pathlib, re; {change}"], cwd=elsewhere, check=True)
    variables = {**os.environ, "DIST": str(tmp_path / "dist"), "DEBIAN_MIRRORS": "http://127.0.0.1:9"}
    done = run([sys.executable, elsewhere / "images/build.py", "secretreader"], variables, timeout=600)
    assert done.status == 1
    assert "Traceback" not in done.err
    assert not (tmp_path / "dist/images").exists(), "a failed build leaves no image"
    return done.err


LOCK = "path = pathlib.Path('images/debian.lock'); text = path.read_text(); "


def test_a_package_that_is_gone_from_the_mirror_is_named_with_the_remedy(tmp_path: Path) -> None:
    """Its digest in the lock is in no cache, and no mirror answers."""
    change = LOCK + "path.write_text(re.sub(r'(libc6 .*) [0-9a-f]{64}', r'\\1 ' + 'ab' * 32, text))"
    error = build_with(tmp_path, change)
    assert "libc6 2.36" in error
    assert "cannot be downloaded" in error
    assert "make images-lock" in error


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r"amd64 libssl3 .*\n", "", "does not hold every package for amd64"),
        (r"(arm64 python3.11-minimal) \S+", r"\1 3.11.2-6", "different Python versions for the two architectures"),
    ],
)
def test_a_lock_that_cannot_be_is_refused(pattern: str, replacement: str, message: str, tmp_path: Path) -> None:
    change = LOCK + f"path.write_text(re.sub({pattern!r}, {replacement!r}, text))"
    assert message in build_with(tmp_path, change)


def test_a_wheel_with_another_hash_than_the_locked_is_refused(tmp_path: Path) -> None:
    change = (
        "path = pathlib.Path('requirements/secretreader.txt'); "
        "path.write_text(re.sub(r'sha256:[0-9a-f]{64}', 'sha256:' + 'ab' * 32, path.read_text()))"
    )
    assert "hash" in build_with(tmp_path, change).lower()


@pytest.mark.parametrize(("platform", "status"), [("x86_64-manylinux_2_36", 0), ("aarch64-manylinux_2_36", 1)])
def test_a_wheel_that_does_not_exist_for_an_architecture_stops_the_build(
    platform: str, status: int, tmp_path: Path
) -> None:
    """The index is a folder with a wheel of machine code for x86-64 only."""
    wheel = tmp_path / "index/some_sdk-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some_sdk.py", "")
        archive.writestr("some_sdk-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some-sdk\nVersion: 1.0\n")
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux_2_17_x86_64\n"
        archive.writestr("some_sdk-1.0.dist-info/WHEEL", tags)
        archive.writestr("some_sdk-1.0.dist-info/RECORD", "")
    shutil.copytree(ROOT / "images", tmp_path / "images", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "requirements").mkdir()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (tmp_path / "requirements/secretreader.txt").write_text(f"some-sdk==1.0 --hash=sha256:{digest}\n")
    script = f"import pathlib, wheels; wheels.install('secretreader', pathlib.Path('app'), {platform!r})"
    variables = {**os.environ, "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheel.parent), "UV_NO_CACHE": "1"}
    done = run([sys.executable, "-c", script], {**variables, "PYTHONPATH": str(tmp_path / "images")}, cwd=tmp_path)
    assert done.status == status, done.err
    assert (tmp_path / "app/some_sdk.py").exists() == (not status)
    assert "Traceback" not in done.err
    assert "some-sdk" in done.err or not status


def test_an_import_that_nobody_reviewed_stops_the_build(tmp_path: Path) -> None:
    change = "path = pathlib.Path('common/execcred/_new.py'); path.write_text('import surprise\\n')"
    error = build_with(tmp_path, change)
    assert "not in unresolved.txt: surprise" in error


def test_modes_survive_unpacking(tree: Path) -> None:
    for path in tree.rglob("*"):
        assert not stat.S_IMODE(path.lstat().st_mode) & (0o022 | stat.S_ISUID | stat.S_ISGID)
