# One word for everything. `make` alone lists the words.
PYTHON       ?= python3
BIN          := .venv/bin
SOAK_MINUTES ?= 10
PYTEST       := $(BIN)/pytest -q
unexport PYTHONDONTWRITEBYTECODE  # keep compiled files, as an installed program has them

.DEFAULT_GOAL := help
.PHONY: help run test check audit bench soak torture format lint types imports fast

help: ## list these words
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

run: .venv/.installed ## the demo: forty tasks, three projects, no account, about a minute
	$(BIN)/fairlane demo

test: .venv/.installed ## every test but the soak
	@tests/prepare
	HYPOTHESIS_PROFILE=ci $(PYTEST) -rs -n 3 --dist worksteal -m "not soak"

check: lint types imports fast ## format, lint, types, imports, fast tests

audit: .venv/.installed ## ask a vulnerability service about what is installed (needs a network)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check pip-audit || { echo "audit: pip-audit cannot be installed here; make check still compares with tests/tidy/advisories.toml"; exit 1; }
	$(BIN)/pip-audit --local --skip-editable

bench: .venv/.installed-bench ## measure against peers, write bench/results.md: [ONLY=store,planner]
	$(BIN)/python -m bench $(ONLY)

soak: .venv/.installed ## property tests for SOAK_MINUTES (10) at most
	HYPOTHESIS_PROFILE=soak SOAK_MINUTES=$(SOAK_MINUTES) $(PYTEST) -n 2 -m soak --timeout 0

torture: .venv/.installed ## daemons, callers, agents in virtual time, crashed at random: [SEED=1] [MINUTES=1|HOURS=…] [STORE=memory]
	$(BIN)/python -m fairlane.testing.torture $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(HOURS),--hours $(HOURS)) $(if $(STORE),--store $(STORE))

format: .venv/.installed ## put the code into form
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: .venv/.installed
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: .venv/.installed
	$(BIN)/mypy

imports: .venv/.installed
	$(BIN)/lint-imports

fast: .venv/.installed
	$(PYTEST) -n 3 --dist worksteal -m "not slow and not soak"

.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Fairlane needs Python 3.11 or later: make PYTHON=python3.11")'
	@echo "Preparing .venv (once, and when pyproject.toml changes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

.venv/.installed-bench: .venv/.installed
	@echo "Adding the peers that bench compares with"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[bench]'
	@touch $@
