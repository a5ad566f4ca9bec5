# Every target sets up what it needs: Python's own venv in .venv, this package in it, again when pyproject.toml changes.
#
#   make demo       the whole life of an operator, on this machine
#   make quick      under a minute: the lower layers, one row of each operator, and with SINCE=main what changed affects
#   make test       layers check and tests; those of the interpreter by both engines
#   make test-all   with the slow ones, all drawn examples, and test-avx2
#   make test-cold  make test with an empty cache of machine code: nightly
#   make test-avx2  all tests of kernels with code for AVX2 alone, on a processor that has more
#   make lint       ruff, names and prose, mypy, layers check    make format  ruff's formatter
#   make bench      figures against their targets    make bench-strategies  those of the algorithms chosen by shape
#   make fuzz       1,000,000 mutants of one-operator models (MUTANTS=...), 200,000 of networks and as many by both
#                   engines (CASES=...), gradients of 2,000 programs from seed SEED, compiled and eager,
#                   and SECONDS (3000) of processor time for files of ONNX, PyTorch, Keras and StableHLO: nightly;
#                   EXECUTOR=dask://host:port: the mutants on a cluster that has this tree at the same path
#   make operator-table  the table operator x type against the official kernels, into docs/ (MODELS=30 a row)
#   make record     what this tree computes: bits, loop graphs, code, files, into OUT (build/baseline); KINDS=bits,loops;
#                   SAMPLE=20: one unit in 20, in minutes
#   make compare    the same again, and every difference from the record (docs/baseline.md)
#   make families   the tables of which module defines which operator or selects which kernel, after one was added or removed
#   make signatures the types of the functions that operators define (ops/signatures.pyi), after one was changed
#   make gallery    docs/gallery.md with pictures of pages, by Chromium
#   make vendor     the scripts of other projects in pages, and axe-core for tests, by npm from pinned digests
#   make kernels    machine code of common networks for this processor's target, for a wheel (docs/compiler.md)
#   make snapshot   the operator catalogue of this version for tests/compat; refuses what would break users
#   make docs       the pages and the API reference as a site in build/site
#   make clean      remove what was built and cached; .venv stays
#
# PYTHON=... picks the Python for a new .venv (3.11 or newer); WORKERS=... the test processes.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
WORKERS ?= 2
CASES ?= 200000
MUTANTS ?= 1000000
MODELS ?= 30
SEED ?= 10000
SECONDS ?= 3000
KINDS ?= bits,loops
SAMPLE ?= 1
OUT ?= build/baseline
ONLY ?=
SINCE ?=
EXECUTOR ?=
FUZZ = $(ONE_THREAD) $(if $(EXECUTOR),PYTHONPATH=tests/lite/fuzz:tests/data/tflite:tests/lite) \
  $(BIN)/python tests/lite/fuzz/run_fuzz.py $(if $(EXECUTOR),--executor '$(EXECUTOR)',--workers $(WORKERS))
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

PYTEST = $(ONE_THREAD) $(BYTECODE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
QUICK_TESTS := $(addprefix tests/,core graph eager autograph tracing ops/test_operators.py ops/test_catalogue.py \
  lite/ops/test_lite_ops.py compiler/lowering/test_rules_on_rows.py test_import_circles.py)
TWO_ENGINES := $(addprefix tests/lite/,interpreter networks state)
KERNEL_TESTS := $(addprefix tests/,compiler tracing/test_jit_compile.py \
  $(addprefix lite/,compiled customs interpreter networks ops state))

# Kernels are compiled in half of the time without LLVM's optimizations; `make test` runs them as users do.
UNOPTIMIZED := OPWRIGHT_OPTIMIZE=0
# Test processes share the cores; a BLAS that starts a thread per core in each of them only gets in its own way.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1
# pytest rewrites the asserts of all tests, 8 s of processor time, unless their bytecode is kept between runs.
BYTECODE := PYTHONDONTWRITEBYTECODE=

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-all test-cold test-avx2 lint format layers bench bench-strategies fuzz operator-table \
  record compare families gallery vendor kernels snapshot docs clean

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

demo: $(RUNTIME)
	@$(BIN)/opwright demo

quick: $(DEV)
	OPWRIGHT_QUICK=1 $(UNOPTIMIZED) $(PYTEST) $(QUICK_TESTS)
	$(if $(SINCE),files=$$($(BIN)/python tests/affected.py $(SINCE)) && { [ -z "$$files" ] || $(PYTEST) $$files; })

test: layers
	$(PYTEST)
	OPWRIGHT_COMPILED=0 $(PYTEST) -m "not slow and not any_engine" $(TWO_ENGINES)

test-all: layers
	OPWRIGHT_THOROUGH=1 $(PYTEST) -m "slow or not slow"
	OPWRIGHT_COMPILED=0 $(PYTEST) -m "not slow and not any_engine" $(TWO_ENGINES)
	$(MAKE) test-avx2

test-cold:
	rm -rf build/test-cache
	$(MAKE) test

test-avx2: $(DEV)
	OPWRIGHT_TARGET=x86-64-v3 $(PYTEST) $(KERNEL_TESTS)

lint: layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/python tests/house_style.py
	$(BIN)/mypy

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

layers: $(DEV)
	$(BIN)/lint-imports --no-cache

bench: $(DEV)
	@$(BIN)/python -m benchmarks

bench-strategies: $(DEV)
	@$(BIN)/python -m benchmarks.strategies

fuzz: $(DEV)
	@$(FUZZ) --what operators --cases $(MUTANTS)
	@$(FUZZ) --cases $(CASES)
	@$(FUZZ) --what engines --cases $(CASES)
	@$(ONE_THREAD) PYTHONPATH=tests/frontends $(BIN)/python -W ignore tests/frontends/test_onnx_fuzz.py 10000
	@$(ONE_THREAD) $(BIN)/python tests/frontends/fuzz_files.py onnx torch keras stablehlo bytecode --seconds $(SECONDS)
	@$(ONE_THREAD) $(BIN)/python tests/random_programs/compiled_gradients.py $(SEED) $$(($(SEED) + 2000))

operator-table: $(DEV)
	@$(ONE_THREAD) PYTHONPATH=tests/lite:tests/lite/ops $(BIN)/python tests/lite/ops/drawn_table.py $(MODELS) --write \
	  $(if $(EXECUTOR),'--executor=$(EXECUTOR)')

record: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m baseline record --kinds $(KINDS) --out $(OUT) --sample $(SAMPLE)

compare: $(DEV)
	@PYTHONPATH=tests $(BIN)/python -m baseline compare --kinds $(KINDS) --out $(OUT) $(if $(ONLY),--only '$(ONLY)')

families: $(DEV)
	@$(BIN)/python tests/lite/make_families.py

signatures: $(DEV)
	@$(BIN)/python tests/ops/make_signatures.py

gallery: $(DEV)
	@$(BIN)/python docs/site/make_gallery.py

vendor: $(DEV)
	@$(BIN)/python tests/pages/make_vendor.py

kernels: $(DEV)
	@$(ONE_THREAD) $(BIN)/python -m benchmarks.prebuild

snapshot: $(DEV)
	@UNRELEASED=$(UNRELEASED) $(BIN)/python tests/compat/make_snapshot.py

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

clean:
	rm -f src/opwright/compiler/native/*.kernels
	rm -rf build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Asking each candidate to run is the only sure test: a name on the path may be a launcher without a Python behind it.
$(BIN)/python:
	@for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(VENV) with $$($$candidate --version)"; \
	    exec $$candidate -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "found no Python >= 3.11 with venv among: $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)" >&2; \
	echo "install one (on Debian and Ubuntu with its -venv package), or name it: make PYTHON=path/to/python3" >&2; \
	exit 1

# pip knows the install but not whether it is current, so a stamp's time is compared with pyproject.toml's.
# An editable install has no bytecode yet, and where PYTHONDONTWRITEBYTECODE is set never would: compile it here, as
# pip does for an ordinary install. Importing without it takes three times as long.
$(RUNTIME): pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $(RUNTIME) $@

$(DOCS): pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[docs]'
	@touch $@
