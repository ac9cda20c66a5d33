# The packages: one archive per plugin, one multi-architecture image per plugin.
.PHONY: zipapps images images-lock test-archives test-images test-packages release-check scan-tools
zipapps: setup ## build dist/<name>-plugin.pyz and dist/execcred.pyz
	$(BIN)/python images/zipapp.py

images: setup ## build dist/images/<name>.oci.tar
	$(BIN)/python images/build.py

images-lock: setup ## renew images/debian.lock
	$(BIN)/python images/debian.py

PACKAGES := EXECCRED_TEST_PACKAGES=1 $(BIN)/pytest -q -n 2 --dist loadfile
test-archives: zipapps ## test the built archives
	$(PACKAGES) $(addprefix tests/packages/test_,zipapps.py tool.py)

test-images: images ## test the built images: trees, starts, installs, containers
	$(PACKAGES) $(addprefix tests/packages/test_,images.py launcher.py install.py containers.py)

test-packages: test-archives test-images ## test all of it, with a scanner, and the other suites on every form
	EXECCRED_TEST_PACKAGES=1 $(BIN)/pytest -q $(addprefix tests/packages/test_,scan.py suites.py)

release-check: setup ## build everything twice, compare, check; write dist/SHA256SUMS
	$(BIN)/python images/release.py

scan-tools: $(GO_BIN)/syft ## build the scanner that test-packages shows the images to
SCANNER := $(addprefix $(GO_SRC)/syft/,go.mod go.sum)
$(GO_BIN)/syft: $(SCANNER)
	$(call go-build,syft,github.com/anchore/syft/cmd/syft)
