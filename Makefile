# Two commands on a fresh machine with Python >= 3.11 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# What the report on the miniature of the study must hold; LCBench and HPO-B need other data.
FIGURES := regret regret-gp real real-gp runtime noise weights
TABLES := regret-table real-table standings standings-counts common-seeds speed-up \
	noise-table weights-table coverage
REPORT := index.html $(TABLES:%=tables/%.md) \
	$(foreach name,$(FIGURES),figures/$(name).png figures/$(name).svg data/$(name).csv)

# The tests for editing: the core, without figures, whole runs and other programs.
QUICK := tests/prior tests/nets tests/acquisition tests/optimiser \
	tests/test_layers.py tests/test_errors.py tests/test_files.py tests/test_linalg.py \
	tests/test_numbers.py tests/test_random.py tests/test_threads.py
NOT_QUICK := tests/optimiser/plots tests/optimiser/test_runs.py tests/optimiser/test_notebook.py

.PHONY: demo quick test test-slow fuzz wheel study docs lint types check clean

demo: $(STAMP)  ## a model tuned and a noisy function optimised, next to Optuna and random search: out/demo.png
	$(BIN)/amortes demo --output out/demo.png

quick: $(STAMP)  ## the tests of the core, for editing
	$(BIN)/pytest -n 2 $(QUICK) $(NOT_QUICK:%=--ignore=%)

test: $(STAMP)  ## the fast tests
	$(BIN)/pytest -n 2

test-slow: $(STAMP)  ## the tests that take minutes
	$(BIN)/pytest -n 2 -m slow

fuzz: $(STAMP)  ## 50,000 hostile inputs, other ones each time; INPUTS and SEED to choose
	$(BIN)/python -m tests.fuzz $(or $(INPUTS),50000) $(SEED)

wheel: $(STAMP)  ## the wheel, installed without extras in a clean environment, optimises: out/wheel
	rm -rf out/wheel
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir out/wheel .
	$(PYTHON) -m venv out/wheel/venv
	out/wheel/venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt \
		"$$(grep '^torch==' constraints.txt)" out/wheel/*.whl
	out/wheel/venv/bin/python -I examples/scipy_style.py 6
	out/wheel/venv/bin/amortes --version

study: $(STAMP)  ## a miniature of the benchmarks, from runs to report, in minutes: out/study
	rm -rf out/study
	$(BIN)/amortes bench run --suite mini --out out/study
	$(BIN)/amortes bench run --problems branin --methods fb-jes --seeds 0-1 --iterations 6 --out out/study
	$(BIN)/amortes bench report out/study
	@cd out/study/report && for part in $(REPORT); do \
		test -s $$part || { echo "The report has no $$part."; exit 1; }; done

docs: $(STAMP)  ## the site: out/site; its examples run, warnings are errors; DRAFT=1 to run none
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

check: lint types test docs study  ## everything continuous integration runs

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:  ## what the above have made; other results in out stay
	rm -rf $(VENV) out/demo.png out/study out/site out/wheel .mypy_cache .ruff_cache .pytest_cache
