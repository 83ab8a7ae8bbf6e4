# Everything needs only Python 3.11 or newer and, for the first `setup`, a network that pip can use.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
TYPED := $(wildcard src/holdfast verification examples bench tests tools)

# What a usable interpreter must manage: new enough, able to make a virtual environment, built with SQLite.
FIT := import sys, venv, ensurepip, sqlite3; sys.exit(sys.version_info < (3, 11))

# The tests start hundreds of Python processes, and half of the time that one takes to start goes into compiling. Where
# the environment forbids compiled files beside the sources, they are kept in the virtual environment all the same.
ifneq ($(PYTHONDONTWRITEBYTECODE),)
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/$(VENV)/pycache
endif

# Handed to pytest: make check PYTEST_ARGS="-k signal -x", make test PYTEST_ARGS="-n auto"
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run test check bench generate format lint types imports coverage clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with the project and its tools (again only when pyproject.toml changed)
	@:

run: $(STAMP) ## run the examples; with DB=postgres on a PostgreSQL server of their own
# Its data is kept in .postgres/
ifeq ($(DB),postgres)
	@$(BIN)/python -m verification.postgres --durable --data .postgres -- $(BIN)/python -m examples.run
else
	@$(BIN)/python -m examples.run
endif

test: lint types imports ## prove everything: lint, types, import rules, all tests, again with replay at every wait, again on PostgreSQL
	@echo "test: fast tests"
	@$(BIN)/python -m pytest -q -n 2 -m "not slow" $(PYTEST_ARGS)
	@echo "test: slow tests: they start, kill and suspend processes"
	@$(BIN)/python -m pytest -q -n 3 -m slow $(PYTEST_ARGS)
	@echo "test: engine and front-end again, every program rebuilt from its history at every wait"
	@HOLDFAST_REPLAY_ALWAYS=1 $(BIN)/python -m pytest -q -n 2 -m "not slow" $(PYTEST_ARGS) tests/unit/engine tests/unit/frontends
	@echo "test: whatever has an engine again, on PostgreSQL"
	@HOLDFAST_TEST_STORE=postgres $(BIN)/python -m pytest -q -n 3 --dist worksteal $(PYTEST_ARGS)

check: lint types imports ## the quick proof: as test, without the slow tests
	@echo "check: fast tests"
	@$(BIN)/python -m pytest -q -m "not slow" $(PYTEST_ARGS)

bench: $(STAMP) ## measure
	@$(BIN)/python -m bench

generate: $(STAMP) ## write what is made from other files: the blocking faces, the gRPC messages
	@$(BIN)/python -m tools.sync_facades
	@$(BIN)/python -m tools.protobuf

format: $(STAMP) ## format the code and apply the safe fixes
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

lint: $(STAMP) ## ruff: rules and format
	@echo "lint: ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .

types: $(STAMP) ## mypy
	@echo "types: mypy on $(TYPED)"
	@$(BIN)/mypy --no-error-summary $(TYPED)

imports: $(STAMP) ## import-linter: who may import whom
	@echo "imports: import-linter"
	@$(BIN)/lint-imports --no-logo

coverage: $(STAMP) ## run the fast tests and show the lines they never reach
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q -m "not slow" $(PYTEST_ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

clean: ## remove .venv, caches and built files
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.*
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src verification examples bench tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Candidates are run, not just looked up: a version manager's shim may exist for a Python that is not installed.
$(STAMP): pyproject.toml
	@if ! $(BIN)/python -c '$(FIT)' 2>/dev/null; then \
		found=; \
		for candidate in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
			if $$candidate -c '$(FIT)' >/dev/null 2>&1; then found=$$candidate; break; fi; \
			if [ "$$candidate" = "$(PYTHON)" ]; then echo "setup: PYTHON=$(PYTHON) will not do, looking for another"; fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo "setup: no usable Python found. Holdfast needs Python 3.11 or newer with the venv and sqlite3 modules" >&2; \
			echo "setup: (on Debian and Ubuntu: the python3-venv package). Name one with: make setup PYTHON=/path/to/python3" >&2; \
			exit 1; \
		fi; \
		echo "setup: creating $(VENV) with $$found ($$($$found -c 'import platform; print(platform.python_version())'))"; \
		$$found -m venv --clear $(VENV); \
	fi
	@echo "setup: installing holdfast and its development tools"
	@if $(BIN)/python -m pip install --quiet --disable-pip-version-check uv 2>$(VENV)/setup.log \
		&& UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip install --quiet --python $(BIN)/python --editable . --group dev 2>>$(VENV)/setup.log; \
	then :; else \
		echo "setup: uv would not do it (see $(VENV)/setup.log), going on with pip"; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev; \
	fi
	@touch $@
	@echo "setup: done"
