# The two commands: `make storm` runs the main storm, `make test` the tests. Each sets up what it needs in .venv, from
# nothing but Python 3.11 or later, pip and make.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first interpreter that is new enough and really runs (a version manager's shim can exist and yet refuse).
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$python" && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# A virtual environment that was made without pip is filled by the pip outside it.
PIP = $$(if $(BIN)/python -c 'import pip' 2>/dev/null; then echo "$(BIN)/python -m pip"; \
	elif $(PYTHON) -c 'import pip' 2>/dev/null; then echo "$(PYTHON) -m pip --python $(BIN)/python"; \
	else echo "pip --python $(BIN)/python"; fi) --disable-pip-version-check

# Left to itself pip compiles every file of every package, one after the other. This compiles what a program imports, on
# all cores, and saves a third of the set-up. A file that cannot be compiled is not ours.
COMPILE = $(BIN)/python -m compileall -qq -j 0 -x 'site-packages/.*/tests?/' $(VENV)/lib stormctl || true

PLAN ?= configs/storm.yaml
ARGS ?=
# Three would take a tenth less time on two cores, and storms in real time would be held up in it.
PYTEST_ARGS ?= -n 2 --dist worksteal

.PHONY: help storm test test-sdk test-lowest lint bench sdk-table wheel-test clean

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

storm: $(VENV)/.installed ## Run the main storm on the local store and show what came of it (always exit 0 once it ran).
	$(BIN)/stormctl run $(PLAN) --report-only $(ARGS)

test: $(VENV)/.installed-dev ## Run all tests but those of `make test-sdk`.
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not sdk" $(ARGS)

test-sdk: $(VENV)/.installed-dev ## Run the tests that install and run published versions of the Workflow SDK.
	$(BIN)/python -m pytest -m sdk $(ARGS)

test-lowest: ## Run all tests on the oldest releases of everything that pyproject.toml allows, in .venv-lowest.
	@mkdir -p build
	@$(PYTHON) .ci/lowest.py pyproject.toml >build/lowest.txt
	PIP_CONSTRAINT="$(CURDIR)/build/lowest.txt" $(MAKE) test VENV=.venv-lowest

lint: $(VENV)/.installed-dev ## Check style, types and the one-way arrows between rooms.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict stormctl/
	$(BIN)/lint-imports

bench: $(VENV)/.installed ## Print how long the things take that have a goal.
	for file in benchmarks/[a-z]*.py; do $(BIN)/python "$$file"; done

sdk-table: $(VENV)/.installed ## Measure versions of the Workflow SDK again, for docs/sdk.md (needs Node.js).
	$(BIN)/stormctl run configs/sdk-table.yaml --report-only $(ARGS)
	$(BIN)/python .ci/sdk_table.py .stormctl/sdk-table/latest docs/sdk.md

wheel-test: $(VENV)/.installed-dev ## Build the wheel and test it in a clean environment, away from the source.
	PYTHON="$(PYTHON)" BUILDER="$(BIN)/python" .ci/wheel-test

clean: ## Remove the environment and the caches. Captured storms under .stormctl/ stay.
	rm -rf $(VENV) .venv-lowest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.made:
	@if [ -z "$(PYTHON)" ]; then \
		echo "stormctl needs Python 3.11 or later. Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; exit 2; fi
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV); }
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	@echo "installing stormctl into $(VENV) (once, about a minute)"
	@$(PIP) install --quiet --no-compile --editable .
	@$(COMPILE)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.made pyproject.toml
	@echo "installing stormctl and its tools into $(VENV) (once, about a minute)"
	@$(PIP) install --quiet --no-compile --editable '.[dev,notebook,dask]'
	@$(COMPILE)
	@touch $(VENV)/.installed $@
