# Two commands do everything: `make demo` sets up and runs the main job, `make test` sets up and passes the tests.
PYTHON ?= python3.11
# Pinned, because a plain `torch` may bring several gigabytes of GPU libraries. TORCH= takes the newest.
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench clean

demo: $(VENV)/.bundled
	$(BIN)/likewise demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src

# Half an hour and more on two cores; needs the evaluation data.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py --readme README.md

$(VENV)/.torch: Makefile
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	touch $@

$(VENV)/.bundled: $(VENV)/.torch pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bundled,retrieval]"
	touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
