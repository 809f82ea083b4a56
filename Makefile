# make demo   set up, recover factors from images, write report.html
# make test   set up, run the tests
# make test-ray  the tests of studies on a Ray cluster, with the extra `ray`
# make check  ruff and mypy
# make bench  timings against named peers (slow; not part of the tests)
PYTHON ?= python3
VENV := .venv
WORKERS ?= 2
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-ray check bench clean

demo: $(READY)
	$(BIN)/unweave demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS)

test-ray: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest tests/experiments/test_ray.py

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/spectral.py
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/busy.py
	$(BIN)/python benchmarks/flows.py

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "unweave needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) runs report.html
