# make demo   set up, recover factors from images, write report.html
# make test   set up, run the tests
# make test-ray  the tests of studies on a Ray cluster, with the extra `ray`
# make check  ruff, mypy, codespell, and the links of the docs site
# make docs   build the docs site with its gallery: docs/_build/html/index.html
# make package  build wheel and sdist, install the wheel elsewhere and use it there
# make mutants  how many small faults, put into the code on purpose, the tests notice (hours; MUTANTS="--sample 40" less)
# make torture  bad inputs, kills, flipped bits, full disks, four processes at once (an hour; TORTURE="--minutes 10" less)
# make bench  timings against named peers (slow; not part of the tests)
PYTHON ?= python3
VENV := .venv
WORKERS ?= 2
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-ray check docs docs-draft package mutants torture bench clean

demo: $(READY)
	$(BIN)/unweave demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS)

test-ray: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest tests/experiments/test_ray.py

check: $(READY) docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python docs/check_links.py docs/_build/html

docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -j 2 -d docs/_build/doctrees docs docs/_build/html

docs-draft: $(READY)
	$(BIN)/python -m sphinx -q -D plot_gallery=0 -d docs/_build/doctrees docs docs/_build/html

package: $(READY)
	$(BIN)/python .ci/check_wheel.py

mutants: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutants.run --jobs $(WORKERS) $(MUTANTS)

torture: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.torture.run $(TORTURE)

bench: $(READY)
	$(BIN)/python benchmarks/spectral.py
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/busy.py
	$(BIN)/python benchmarks/flows.py

$(READY): pyproject.toml constraints.txt src/unweave/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "unweave needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	@touch $@

clean:
	rm -rf $(VENV) dist runs report.html docs/_build docs/gallery docs/api/generated
