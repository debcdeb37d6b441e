# Each target sets up what it needs in .venv; `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
RUN ?= runs/demo

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: .venv/demo ## real 2-rank training under the profiler, its analysis, a report
	$(BIN)/c3prof demo --dir $(RUN)

dashboard: .venv/demo ## the app on the run that `make demo` made
	@test -d $(RUN) || $(MAKE) demo
	$(BIN)/c3prof dashboard $(RUN)

test: .venv/dev lint ## linters, types, import contracts and every test
	$(BIN)/python -m pytest

lint: .venv/dev ## linters, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fuzz: .venv/dev ## native scan against the Python one, with sanitizers, for minutes
	$(BIN)/python tests/readers/fuzz_scan.py --sanitize --files 20000
	$(BIN)/python tests/readers/fuzz_scan.py --files 100000

bench: .venv/dev ## speed and memory against other tools → docs/benchmarks.md
	$(BIN)/python benchmarks/run.py

docs: .venv/dev ## generated documentation: docs/columns.md, the JSON Schema
	$(BIN)/c3prof schema --format markdown > docs/columns.md
	$(BIN)/c3prof schema > tests/golden/report.schema.json

test-matrix: ## the suite without torch on each Python from 3.10 to 3.13, and once with the lowest versions allowed
	$(PYTHON) tests/matrix.py

clean: ## remove environments and caches
	rm -rf .venv .venv-matrix build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(PIP) install --quiet --upgrade pip

.venv/demo: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[collect,app]'
	@$(BIN)/python -m compileall -q c3prof
	@touch $@

.venv/dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[collect,app,cluster]' --group dev
	@$(BIN)/python -m compileall -q c3prof
	@touch $@ .venv/demo

.PHONY: help demo dashboard test lint fuzz bench docs test-matrix clean
