"""In images, as app/__main__: what the launcher starts. It starts the plugin whose tree it lies in."""

from __future__ import annotations

import os
import sys

APP = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(APP)
# The container's own CA bundle where it has one (an admin may have added to it), as Go finds it.
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    f"{TREE}/etc/ca-certificates.crt",
)


def start() -> None:
    """Run the plugin's main, which does not return."""
    sys.path.insert(0, APP)
    sys.executable = ""  # the bundled interpreter starts through its loader only: nobody shall spawn it
    if not os.environ.get("SSL_CERT_FILE") and not os.environ.get("SSL_CERT_DIR"):
        os.environ["SSL_CERT_FILE"] = next(path for path in CA_BUNDLES if os.path.exists(path))
    name = os.path.basename(TREE).removesuffix("-plugin").replace("-", "_")
    __import__(f"execcred_{name}").main()


if __name__ == "__main__":
    start()
