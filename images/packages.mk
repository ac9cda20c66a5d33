# The packages: one archive per plugin, one multi-architecture image per plugin.
.PHONY: zipapps images images-lock test-archives test-packages release-check scan-tools
zipapps: setup ## build dist/<name>-plugin.pyz and dist/execcred.pyz
	$(BIN)/python images/zipapp.py

images: setup ## build dist/images/<name>.oci.tar
	$(BIN)/python images/build.py

images-lock: setup ## renew images/debian.lock
	$(BIN)/python images/debian.py

test-archives: zipapps ## test the built archives only
	EXECCRED_TEST_PACKAGES=1 $(BIN)/pytest -q tests/packages/test_zipapps.py tests/packages/test_tool.py

test-packages: zipapps images ## test the built archives and images
	EXECCRED_TEST_PACKAGES=1 $(BIN)/pytest -q tests/packages

release-check: setup ## build everything twice, compare, check; write dist/SHA256SUMS
	$(BIN)/python images/release.py

scan-tools: $(GO_BIN)/syft ## build the scanner that test-packages shows the images to
SCANNER := $(addprefix $(GO_SRC)/syft/,go.mod go.sum)
$(GO_BIN)/syft: $(SCANNER)
	$(call go-build,syft,github.com/anchore/syft/cmd/syft)
