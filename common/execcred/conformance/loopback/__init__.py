"""A folder for PYTHONPATH: its sitecustomize keeps a Python process on loopback."""
