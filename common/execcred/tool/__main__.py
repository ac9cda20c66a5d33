"""`python -m execcred.tool`, and the start of the tool's archive."""

from __future__ import annotations

from execcred.tool import main

main()
