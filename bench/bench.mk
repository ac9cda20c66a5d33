# awscli v1 as a peer, in an environment of its own: its botocore is pinned to its own version.
AWSCLI := .cache/awscli
$(AWSCLI)/.ready: bench/awscli.txt .venv/.ready
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(AWSCLI)
	$(BIN)/uv pip sync --quiet --python $(AWSCLI)/bin/python --require-hashes bench/awscli.txt
	touch $@

.PHONY: bench
bench: setup zipapps images bench-tools $(AWSCLI)/.ready ## measure everything that has a bar, write bench/*.md and docs/which-form.md
	cd bench && ../$(BIN)/python bench.py
	cd bench && ../$(BIN)/python forms.py
	cd bench && ../$(BIN)/python access.py

.PHONY: bench-forms
bench-forms: setup zipapps images ## measure size and start-up of each form, write its table in docs/which-form.md
	cd bench && ../$(BIN)/python forms.py

.PHONY: bench-access
bench-access: setup ## measure the access library with 1,000 clusters, write bench/access.md
	cd bench && ../$(BIN)/python access.py
