# Everything that a fresh machine with Python 3.11 or newer, Node.js 18 or newer and make needs. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK := requirements.lock
NODE_READY := node_modules/.package-lock.json
PYTEST_ARGS ?=

.PHONY: help setup up down check types test node_modules clean

help: ## list the targets
	@grep -hE '^[a-z_-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z_-]+):.*## (.*)/  \1|\2/' | column -t -s '|'

setup: $(READY) ## make the environment .venv, when anything it is made of has changed

# The stamp holds what the environment was made of: a changed lock file or project file makes it anew, a touched one does not.
$(READY): $(LOCK) pyproject.toml
	@if [ -x $(BIN)/duetime ] && [ -f $(READY) ] && [ "$$(cat $(READY))" = "$$(cat $(LOCK) pyproject.toml | cksum)" ]; then \
		touch $(READY); exit 0; fi; \
	if ! [ -x $(BIN)/python ]; then \
		for python in python3 python3.13 python3.12 python3.11 python3.14; do \
			if command -v $$python >/dev/null && $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
				echo "making $(VENV) with $$($$python --version)"; $$python -m venv $(VENV); break; fi; \
		done; fi; \
	[ -x $(BIN)/python ] || { echo "no Python 3.11 or newer with venv found: install it (on Debian also python3-venv)" >&2; exit 1; }; \
	[ -x $(BIN)/uv ] || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--requirement <(awk '/^[^ ]/ {wanted = /^uv==/} wanted' $(LOCK)); \
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip sync --quiet --require-hashes $(LOCK); \
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .; \
	cat $(LOCK) pyproject.toml | cksum > $(READY)

node_modules: $(NODE_READY) ## install the CDK command that package-lock.json pins

$(NODE_READY): package-lock.json
	@command -v npm >/dev/null || { echo "npm not found: install Node.js 18 or newer" >&2; exit 1; }
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $(NODE_READY)

up: $(READY) $(NODE_READY) ## start a local Duetime, with a demo job; Ctrl-C ends it
	@$(BIN)/duetime up --demo

down: $(READY) ## end a local Duetime that runs in the background
	@$(BIN)/duetime down

check: $(READY) ## format, lint, types, import contracts
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

test: check $(NODE_READY) ## everything that CI runs
	@$(BIN)/pytest -n 2 --dist loadfile -m 'not deployed' $(PYTEST_ARGS)
	@$(BIN)/pytest -m deployed $(PYTEST_ARGS)

clean: ## remove what can be made again; the local Duetime's jobs too
	rm -rf $(VENV) node_modules build cdk.out .duetime .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.PHONY: bench

BENCH ?=
BENCH_VENV := build/bench-venv
BENCH_LOCK := requirements-bench.lock

# What others' schedulers need is never in .venv.
bench: $(READY) $(NODE_READY) $(BENCH_VENV)/.ready ## measure, beside other ways, into docs/performance.md
	@$(BIN)/python -m bench $(BENCH)

$(BENCH_VENV)/.ready: $(BENCH_LOCK) | $(READY)
	@[ -x $(BENCH_VENV)/bin/python ] || $(BIN)/uv venv --quiet --python $(BIN)/python $(BENCH_VENV)
	@VIRTUAL_ENV=$(CURDIR)/$(BENCH_VENV) $(BIN)/uv pip sync --quiet --require-hashes $(BENCH_LOCK)
	@touch $@

.PHONY: faults faults-mutants faults-deployed

faults: $(READY) ## try every crash point, interleaving, fault and outage, and count
	@$(BIN)/python -m tests.faults $(FAULT)

faults-mutants: $(READY) ## delete each safeguard in a copy: the fault tests must fail
	@$(BIN)/python -m tests.faults.mutants

faults-deployed: $(READY) $(NODE_READY) ## kill processes of the deployed stack while 2,000 jobs run
	@$(BIN)/python -m tests.faults.deployed
