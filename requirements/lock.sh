#!/bin/sh
# Renews the hash-pinned locks. They name no index, so they work behind any mirror.
set -eu
cd "$(dirname "$0")/.."
# A week's cooldown: a hijacked release is usually found by then.
lock() { .venv/bin/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
  --python-version 3.11 --exclude-newer "$(date -u -d '7 days ago' +%F)" "$@"; }
lock pyproject.toml --all-extras --group dev -o requirements/all.txt
for plugin in secretreader kubeconfig-secretreader eks gke aks tool; do
  lock pyproject.toml --extra "$plugin" -c requirements/all.txt -o "requirements/$plugin.txt"
done
echo "awscli>=1.40,<2" | lock - -o bench/awscli.txt
