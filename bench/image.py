"""Takes an image apart: the tree that a container would see, for this machine."""

from __future__ import annotations

import gzip
import io
import json
import platform
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def unpack(archive: Path, folder: Path) -> int:
    """Unpack an OCI archive's one layer into a new folder; return the bytes of its files."""
    with tarfile.open(archive) as outer:

        def blob(digest: str) -> bytes:
            found = outer.extractfile("blobs/" + digest.replace(":", "/"))
            assert found
            return found.read()

        top = outer.extractfile("index.json")
        assert top
        index: dict[str, Any] = json.loads(blob(json.load(top)["manifests"][0]["digest"]))
        wanted = ARCHITECTURES[platform.machine()]
        chosen = next(each for each in index["manifests"] if each["platform"]["architecture"] == wanted)
        layer = gzip.decompress(blob(json.loads(blob(chosen["digest"]))["layers"][0]["digest"]))
    with tarfile.open(fileobj=io.BytesIO(layer)) as inner:
        inner.extractall(folder, filter="tar")
        return sum([member.size for member in inner if member.isreg()])
