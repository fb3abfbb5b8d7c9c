# Two commands on a fresh Debian or Ubuntu with Python 3.11:
#     make reproduce    everything of the tiny preset; ARTIFACTS=fresh computes anew what is published
#     make test         linters and all tests
# Both set up .venv first if it is not there, and do nothing twice. Two more:
#     make env          .venv alone
#     make doctor       whether this machine can run the preset: versions, GPUs, memory, disk
# and a fourth takes a small real model through all of it, on raw data in DATA (docs/models.md):
#     make small-real
# Variables: PYTHON, PRESET, ARTIFACTS, TESTS, DATA.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# never the environment that is being made, should it be active
PYTHON ?= $(shell type -ap python3.11 python3 | grep -v '/\.venv/' | head -n 1)
PRESET ?= tiny
ARTIFACTS ?= cached
TESTS ?= tests
DATA ?= data/raw

.DEFAULT_GOAL := help
.PHONY: help reproduce test lint env doctor small-real

# one process, one thread: what runs side by side is decided by Snakemake
export OMP_NUM_THREADS ?= 1

RUN := .venv/bin/python -m
# named after the lock, so a changed lock or a set-up that was killed starts again from nothing
STAMP := .venv/ready-$(firstword $(shell sha256sum envs/cpu.lock))

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

reproduce: $(STAMP)
	$(RUN) snakemake --profile profiles/local all --config preset=$(PRESET) artifacts=$(ARTIFACTS)

test: lint
	$(RUN) pytest $(TESTS)

lint: $(STAMP)
	$(RUN) ruff check .
	$(RUN) ruff format --check .

env: $(STAMP)

doctor:
	@test -x .venv/bin/python || { echo "make: there is no .venv yet; set it up with 'make env'" >&2; exit 1; }
	@$(RUN) ibtpo --preset $(PRESET) doctor

small-real: $(STAMP)
	$(RUN) pip install --quiet --disable-pip-version-check --no-deps --requirement envs/small-real.txt
	$(RUN) snakemake fetch_model --config preset=small-real
	$(RUN) snakemake --profile profiles/local all --config preset=small-real 'corpora={data_root: "$(DATA)"}'

$(STAMP):
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] < (3, 11))' 2>/dev/null || \
		{ echo "make: Python 3.11 or later is needed and '$(PYTHON)' is not. Install python3.11 or say PYTHON=<path>." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make: '$(PYTHON)' has no venv module. Install it: apt-get install python3-venv" >&2; exit 1; }
	rm -rf .venv
	"$(PYTHON)" -m venv .venv
	$(RUN) pip install --quiet --disable-pip-version-check --no-deps --requirement envs/cpu.lock
	$(RUN) pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@.venv/bin/python -c 'import sys, torch; sys.exit(torch.version.cuda is not None)' || \
		{ echo "make: pip took another build of torch than the CPU one. Point pip at CPU builds (PIP_EXTRA_INDEX_URL) and run again." >&2; exit 1; }
	touch "$@"
