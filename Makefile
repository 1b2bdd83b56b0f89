# `make run` starts the app and `make test` runs the whole test suite. Both build .venv first,
# and again only when a requirements file or the Python version changes.
#
# All paths below are relative, so the project may stand in a folder with spaces in its name.

PORT ?= 8501
# Test processes at the same time; 0 runs the tests in one process.
WORKERS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=

# The first Python 3.11 or newer on the path, or the one named as in `make run PYTHON=python3.12`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; exit; }; \
	done; echo python3)

VENV := .venv
BENCH_VENV := .venv-bench
VENV_PYTHON := $(VENV)/bin/python
BENCH_PYTHON := $(BENCH_VENV)/bin/python
# The index of PyTorch's CPU builds: PyPI's Linux wheel drags in gigabytes of CUDA libraries.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.DEFAULT_GOAL := help
.PHONY: help run test lint format types contracts bench bench-app clean \
	environment test-environment bench-environment

# $(call make-environment,FOLDER): a fresh virtual environment, or one line that says what is
# missing. The file `.unfinished` stays in FOLDER until every requirement is installed.
define make-environment
	command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "expected Python 3.11 or newer, found no command '$(PYTHON)' (choose one: make PYTHON=python3.12)" >&2; \
	  exit 1; }; \
	"$(PYTHON)" -c 'import sys; v = ".".join(map(str, sys.version_info[:3])); sys.exit(0 if sys.version_info >= (3, 11) else "expected Python 3.11 or newer, found %s at %s (choose one: make PYTHON=python3.12)" % (v, sys.executable))'; \
	"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "expected Python with its venv module, found none in '$(PYTHON)' (on Debian and Ubuntu: apt-get install python3-venv)" >&2; \
	  exit 1; }; \
	rm -rf $(1); mkdir $(1); touch $(1)/.unfinished; \
	echo "making the virtual environment $(1)"; \
	"$(PYTHON)" -m venv $(1)
endef

# $(call install,FOLDER,REQUIREMENTS,FILES,EXTRA): FOLDER holds REQUIREMENTS. Nothing is done when
# FOLDER already records the checksum of FILES; an interrupted installation is thrown away.
# EXTRA is a command that runs before pip installs REQUIREMENTS.
define install
	@set -e; stamp=$(1)/.installed-$(notdir $(2)); \
	found=$$($(1)/bin/python -c 'import sys; sys.version_info >= (3, 11) and print(sys.version_info[:2])' 2>/dev/null || true); \
	wanted="$$found $$(cat $(3) | cksum)"; \
	if [ -n "$$found" ] && [ ! -e $(1)/.unfinished ] && [ "$$(cat $$stamp 2>/dev/null)" = "$$wanted" ]; then exit 0; fi; \
	if [ -e $(1)/.unfinished ] || [ -z "$$found" ] || ! $(1)/bin/python -m pip --version >/dev/null 2>&1; then \
	  $(call make-environment,$(1)); \
	  wanted="$$($(1)/bin/python -c 'import sys; print(sys.version_info[:2])') $$(cat $(3) | cksum)"; \
	fi; \
	touch $(1)/.unfinished; \
	echo "installing $(2) into $(1)"; \
	$(if $(4),$(4);) \
	$(1)/bin/python -m pip install --quiet --no-input --disable-pip-version-check -r $(2); \
	echo "$$wanted" > $$stamp; rm $(1)/.unfinished
endef

help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1 | \2/p' Makefile | while IFS='|' read -r name text; do \
	  printf '%-14s%s\n' "$$name" "$$text"; done

run: environment ## start the app on port 8501 (another one: make run PORT=8600)
	@exec $(VENV_PYTHON) -m streamlit run app.py --server.port "$(PORT)"

test: test-environment ## run the whole test suite (more options: make test PYTEST_ARGS="-k cache")
	$(VENV_PYTHON) -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

lint: test-environment ## check style and formatting
	$(VENV_PYTHON) -m ruff check .
	$(VENV_PYTHON) -m ruff format --check .

format: test-environment ## mend style and formatting where that is automatic
	$(VENV_PYTHON) -m ruff check --fix-only --quiet .
	$(VENV_PYTHON) -m ruff format .

types: test-environment ## check the types
	$(VENV_PYTHON) -m mypy

contracts: test-environment ## check which module may import which
	$(VENV)/bin/lint-imports

bench: bench-environment ## time the decoder beside its peers (they get an environment of their own)
	$(BENCH_PYTHON) -m benchmarks $(BENCH_ARGS)

bench-app: test-environment ## time a changed control on every page, then fifty visitors at once
	$(VENV_PYTHON) -m benchmarks.app_latency $(BENCH_ARGS)
	$(VENV_PYTHON) -m benchmarks.app_visitors

clean: ## remove the environments and everything generated
	rm -rf $(VENV) $(BENCH_VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

environment:
	$(call install,$(VENV),requirements.txt,requirements.txt constraints.txt)

test-environment:
	$(call install,$(VENV),requirements-test.txt,requirements-test.txt requirements.txt constraints.txt)

# Where the CPU index cannot be reached, the second installation takes torch from the usual one.
INSTALL_CPU_TORCH = $(BENCH_PYTHON) -m pip install --quiet --no-input --disable-pip-version-check \
	--retries 1 --no-deps --index-url "$(TORCH_INDEX)" $$(sed -n '/^torch==/p' benchmarks/requirements.txt) \
	2>/dev/null || true

bench-environment:
	$(call install,$(BENCH_VENV),benchmarks/requirements.txt,benchmarks/requirements.txt,$(INSTALL_CPU_TORCH))
