# Everything runs in .venv, which each target creates or brings up to date by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

# As many as tests/conftest.py says, which gives each one thread, and no more than memory bears.
WORKERS ?= auto

.DELETE_ON_ERROR:
.PHONY: help setup translate test check torture endure demo bench clean

help: ## show the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='	' read -r target words; do printf '  make %-9s %s\n' "$$target" "$$words"; done

# What translating needs is a hundredth of what training needs, and is there in seconds.
LIGHT := $(VENV)/.light
TEXT ?= The animal didn't cross the street because it was too tired.
FROM ?= en
TO ?= de
# As they were typed, and through the environment: make would take "$20" for a variable of its own, a shell for its.
override TEXT := $(value TEXT)
override FROM := $(value FROM)
override TO := $(value TO)
export TEXT FROM TO

translate: $(LIGHT) ## translate TEXT="…" (FROM=en TO=de) with the model that ships
	@printf '%s\n' "$$TEXT" | $(BIN)/qkv translate --from "$$FROM" --to "$$TO"

setup: $(STAMP) ## create .venv with everything a developer needs (PYTHON=python3.12 chooses the interpreter)

test: setup check ## check, then run all tests
	$(BIN)/python -m pytest -rs -n $(WORKERS) --maxprocesses 16 --dist worksteal

check: setup ## lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

torture: setup ## kill, damage, fill and lie in earnest, and tell what held (only root tries a full disk)
	$(BIN)/python -m tests.torture

endure: setup ## fuzz a server, overload it, leave it, stop it fifty times and use it for an hour (about 90 minutes)
	$(BIN)/python -m tests.serve.endure

demo: setup ## train a small translator on the corpus that ships with the project, and score it
	PATH="$(CURDIR)/$(BIN):$$PATH" demo/run

bench: setup ## measure qkv beside its peers
	$(BIN)/python -m bench

clean: ## remove .venv and everything else that was made here
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is brought to the pinned version first: older ones know no dependency groups.
# PIP_CONSTRAINT, unlike -c, also holds for the environment in which the package itself is built. Its value is a list, so
# it names no folder: the path to this one may have a space in it.
$(STAMP) $(LIGHT): export PIP_CONSTRAINT := constraints.txt
$(STAMP) $(LIGHT): export PIP_DISABLE_PIP_VERSION_CHECK := 1
$(LIGHT): WHAT := .
$(LIGHT): MORE := :
$(STAMP): WHAT := '.[train,plot,tensorboard,serve]' --group dev
HAS_PIP := $(BIN)/python -m pip --version >/dev/null 2>&1
# What tests of the page judge it by; where it cannot be had, they say so.
$(STAMP): MORE := npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/axe axe-core@4.14.0 >/dev/null 2>&1 || true
$(STAMP) $(LIGHT): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: no $(PYTHON) here; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: qkv needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1); name a newer one: make PYTHON=python3.11" >&2; exit 1; }
	@echo "setting up $(VENV); the first time, this downloads and takes a while" >&2
	@rm -f $@
	@# Where setting up was interrupted, there may be an environment without pip, or with half of one.
	@$(HAS_PIP) || $(PYTHON) -m venv $(VENV)
	@$(HAS_PIP) || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet pip && \
		$(BIN)/python -m pip install --quiet --quiet --editable $(WHAT) || \
		{ echo "make: pip could not install what qkv needs; is there a network? Where there is none, pip speaks of conflicting versions; 'make clean' lets all of it begin anew" >&2; exit 1; }
	@$(MORE)
	@touch $(LIGHT) $@
