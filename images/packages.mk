# The packages: one archive per plugin, one multi-architecture image per plugin.
.PHONY: zipapps images images-lock test-packages release-check
zipapps: setup ## build dist/<name>-plugin.pyz
	$(BIN)/python images/zipapp.py

images: setup ## build dist/images/<name>.oci.tar
	$(BIN)/python images/build.py

images-lock: setup ## renew images/debian.lock
	$(BIN)/python images/debian.py

test-packages: zipapps images ## test the built archives and images
	EXECCRED_TEST_PACKAGES=1 $(BIN)/pytest -q tests/packages

release-check: setup ## build everything twice, compare, check; write dist/SHA256SUMS
	$(BIN)/python images/release.py
