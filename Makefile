# make test    everything that has to hold, from a fresh clone (Python 3.11+, and root or sudo for Debian's chromium)
# make demo    run examples.ipynb and print it; MODEL=provider:model asks another model than the built-in one
# make lab     open examples.ipynb in JupyterLab
# make bench   measure

PYTHON ?= python3
MODEL ?=
PYTEST_ARGS ?=

BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help test lint environments demo lab bench clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# make/make/p' Makefile

test: environments lint
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

environments: .venv/.test
	$(BIN)/python -m tests.environments kernels chromium

demo: .venv/.lab
	$(BIN)/python -m pi_notebook.notebook.demo $(if $(MODEL),--model '$(MODEL)')

lab: .venv/.lab
	$(BIN)/jupyter lab $(ALLOW_ROOT) examples.ipynb

bench: .venv/.test
	$(BIN)/python -m tests.benchmarks

clean:
	rm -rf .venv .venvs build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# ---- environments

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python cannot make environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv

.venv/.lab: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing the package and JupyterLab (a minute or two)"
	@$(INSTALL) -e '.[lab]'
	@touch $@

.venv/.test: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing the package and all that its tests need (a few minutes)"
	@$(INSTALL) -e '.[test]'
	@touch $@ .venv/.lab
