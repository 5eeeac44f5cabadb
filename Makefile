# Two commands set everything up: `make demo` and `make test`. Both use .venv in this folder.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint
demo: .venv/base
	$(BIN)/python -m jobs.demo

test: .venv/dev
	$(BIN)/pytest

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The base has no torch. The seconds it took are for `make demo` to print.
.venv/base: pyproject.toml
	@started=$$(date +%s); \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "gistmill needs Python 3.11 or newer; set PYTHON=..."; exit 2; }; \
	$(PYTHON) -m venv .venv && $(BIN)/pip install --quiet --editable . \
	  && echo $$(( $$(date +%s) - started )) > $@

.venv/dev: .venv/base
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@
