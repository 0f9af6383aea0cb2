# Needs Python 3.11 or newer, pip and make; everything else is installed into .venv on the first run.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=

.PHONY: help demo test lint format bench clean

help:
	@echo "make demo    run examples/demo.py"
	@echo "make test    run the tests              (ARGS='-k sum' selects)"
	@echo "make lint    ruff, mypy, import directions"
	@echo "make format  let ruff format and fix"
	@echo "make bench   race against the peers     (ARGS='eager_overhead --quick' selects)"
	@echo "make clean   remove .venv and everything generated"

demo: $(VENV)/.dev
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/test_layers.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Some distributions ship Python without ensurepip, so that a new environment has no pip of its own; the one outside
# then installs into it.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Retrograde needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV) || $(PYTHON) -m venv --clear --without-pip $(VENV)

pip = $$($(BIN)/python -m pip --version >/dev/null 2>&1 && echo "$(BIN)/python -m pip" || echo "$(PYTHON) -m pip --python $(BIN)/python")

# A stamp is older than pyproject.toml exactly when the dependencies may have changed.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing into $(VENV) …"; $(pip) install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/.dev
	@echo "installing the peers into $(VENV) …"; $(pip) install --quiet --editable '.[bench]'
	@touch $@
