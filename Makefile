# One short target per habit; `make` alone lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: help setup demo test check coverage fuzz lint lock clean provider-configs
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 21

.venv/.ready: pyproject.toml requirements/all.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with PYTHON=…" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet 'uv>=0.8'
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/all.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

setup: .venv/.ready ## make .venv with everything locked, execcred editable

demo: setup ## get a credential through real clients on an embedded hub
	$(BIN)/python demo/demo.py

lint: setup ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy common plugins/* tests demo bench examples images provider-configs
	$(BIN)/lint-imports

# One worker per core; what must not run beside each other says so by its group.
MEASURE := $(BIN)/coverage run -m pytest -q -n auto --dist loadgroup

test: lint ## every test but those of the packages, with branch coverage
	$(BIN)/coverage erase
	$(MEASURE) --ignore tests/packages
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

check: lint test ## what a change must pass

coverage: setup ## branch coverage of layer and Secret readers by their own tests
	$(BIN)/coverage erase
	$(MEASURE) tests/unit tests/property tests/conformance
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --include 'common/execcred/*.py,plugins/*secretreader/*.py'

fuzz: setup ## a million random inputs, over all cores
	cd tests && PYTHONPATH=. nice ../$(BIN)/python -m property.fuzz 1000000

provider-configs: setup ## write provider-configs/ as `execcred provider-config` prints it
	$(BIN)/python provider-configs/make.py

lock: setup ## renew requirements/ from pyproject.toml
	requirements/lock.sh

clean: ## remove what the targets made
	rm -rf .venv .cache dist build

-include tests/interop/go.mk
-include bench/bench.mk

-include images/packages.mk
