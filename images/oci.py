"""OCI archives in the standard library: the same tree gives the same digests and the same bytes.

Source of the rules: the OCI image specification 1.1 (layout, index, manifest, config).
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from layout import EPOCH

OCI = "application/vnd.oci.image"
USER = "65532:65532"


class Image(NamedTuple):
    """One architecture of an image: its tree on disk, and what its config says."""

    architecture: str
    tree: Path
    entrypoint: str
    labels: dict[str, str]


def write(target: Path, images: list[Image], reference: str) -> str:
    """Write one archive with one index over `images`; return the index's digest, which is the image's."""
    blobs: dict[str, bytes] = {}
    manifests = [_manifest(image, blobs) for image in images]
    labels = {name: text for name, text in images[0].labels.items() if name.startswith("org.opencontainers.")}
    index = _blob(
        {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": manifests, "annotations": labels}, blobs
    )
    # Exactly one entry, the index over the architectures: loaders choose badly among several.
    entry = _descriptor(index, f"{OCI}.index.v1+json", blobs)
    entry["annotations"] = {"org.opencontainers.image.ref.name": reference}
    files = {f"blobs/sha256/{digest}": content for digest, content in blobs.items()}
    files["index.json"] = _json({"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [entry]})
    files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            archive.addfile(_entry(name, 0o444, len(content)), io.BytesIO(content))
    part.rename(target)
    return f"sha256:{index}"


def _manifest(image: Image, blobs: dict[str, bytes]) -> dict[str, Any]:
    layer = layer_of(image.tree)
    packed = _gzip(layer)
    digest = hashlib.sha256(packed).hexdigest()
    blobs[digest] = packed
    config = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
        "architecture": image.architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "Env": ["PATH=/bin"],
            "Entrypoint": [image.entrypoint],
            "WorkingDir": "/",
            "Labels": image.labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": _descriptor(_blob(config, blobs), f"{OCI}.config.v1+json", blobs),
        "layers": [_descriptor(digest, f"{OCI}.layer.v1.tar+gzip", blobs)],
    }
    entry = _descriptor(_blob(manifest, blobs), f"{OCI}.manifest.v1+json", blobs)
    entry["platform"] = {"architecture": image.architecture, "os": "linux"}
    return entry


def layer_of(tree: Path) -> bytes:
    """Return the tar of a tree: sorted, owned by root, one time, and only the mode bits that are right by design."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(tree.rglob("*")):
            name = str(path.relative_to(tree))
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise ValueError(f"{name} is neither a file nor a folder")
            if path.is_dir():
                entry = _entry(name, 0o755, 0)
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                content = path.read_bytes()
                mode = 0o555 if path.stat().st_mode & 0o111 else 0o444
                archive.addfile(_entry(name, mode, len(content)), io.BytesIO(content))
    return buffer.getvalue()


def _entry(name: str, mode: int, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size, entry.mtime = mode, size, EPOCH
    return entry


def _gzip(data: bytes) -> bytes:
    """Compress with a fixed header: the gzip module's differs between Python versions."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = packer.compress(data) + packer.flush()
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return header + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def _blob(document: dict[str, Any], blobs: dict[str, bytes]) -> str:
    content = _json(document)
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return digest


def _descriptor(digest: str, kind: str, blobs: dict[str, bytes]) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(blobs[digest])}


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
