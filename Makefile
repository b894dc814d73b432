# Two commands on a fresh machine with Python >= 3.11 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow lint types check clean

demo: $(STAMP)  ## noisy Hartmann-6: entropy search beside LogEI and random search, out/demo.png
	$(BIN)/amortes demo --output out/demo.png

test: $(STAMP)  ## the fast tests
	$(BIN)/pytest -n 2

test-slow: $(STAMP)  ## the tests that take minutes
	$(BIN)/pytest -n 2 -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

check: lint types test  ## everything continuous integration runs

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache
