# Two commands set everything up on a machine with Python 3.11+ and make: `make demo` and `make test`.
# Environments are kept between runs; they are renewed when pyproject.toml changes.

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
JOBS   ?= 2
SHARED ?= ../shared

BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check install -qq
SAY  := @printf '\n== %s\n'

.DEFAULT_GOAL := help
.PHONY: help demo test check format coverage quick bench bench-middleware bench-gates bench-before-after bench-tracing docs serve test-lowest peer probes clean bench-checkpoints upstream cve report crash-test
.DELETE_ON_ERROR:

help:  ## show this list
	@echo 'make TARGET [PYTHON=python3.12] [VENV=.venv] [ARGS="..."]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- environments --------------------------------------------------------------------------------------------------

$(BIN)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "agentkit needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(SAY) 'creating $(VENV)'
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "python's venv module is missing; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }
	@touch $@

$(BIN)/.with-%: $(BIN)/.made pyproject.toml
	$(SAY) 'installing agentkit[$*] into $(VENV) (about a minute the first time)'
	@$(PIP) -e '.[$*]'
	@touch $@

# ---- what a newcomer runs ------------------------------------------------------------------------------------------

demo: $(BIN)/.with-demo  ## run the order assistant offline, on its own database (ARGS=--help lists its options)
	@$(BIN)/python -m examples.order_assistant $(ARGS)

cve: $(BIN)/.with-demo  ## assess published vulnerabilities offline (ARGS="CVE-2021-44228 --as-drawn" shows the fault)
	@$(BIN)/python -m examples.cve_assessor $(ARGS)
report: $(BIN)/.with-demo  ## write a report from slow sources; stop it anywhere and call it again (ARGS=--help)
	@$(BIN)/python -m examples.monthly_report $(ARGS)

test: check  ## lint, types, import layers and all tests
	$(SAY) 'pytest'
	@$(BIN)/python -m pytest -q -n $(JOBS) $(ARGS)

# ---- what a contributor runs ---------------------------------------------------------------------------------------

check: $(BIN)/.with-dev  ## lint, formatting, types and import layers only
	$(SAY) 'ruff check'
	@$(BIN)/ruff check .
	$(SAY) 'ruff format'
	@$(BIN)/ruff format --check .
	$(SAY) 'mypy'
	@$(BIN)/mypy
	$(SAY) 'import layers'
	@$(BIN)/lint-imports --no-logo

format: $(BIN)/.with-dev  ## sort imports and format the code
	@$(BIN)/ruff check --fix-only --select I .
	@$(BIN)/ruff format .

coverage: $(BIN)/.with-dev  ## all tests with branch coverage, which takes twice the time; below the floor it fails
	@$(BIN)/python -m pytest -q -n $(JOBS) --cov --cov-report=term $(ARGS)

quick: $(BIN)/.with-dev  ## tests alone, without coverage: make quick ARGS="tests/core -k jump"
	@$(BIN)/python -m pytest -q $(ARGS)

bench: $(BIN)/.with-bench $(BIN)/.with-test  ## what a turn costs beside four others, on every scenario (20 minutes; ARGS=--help)
	@$(BIN)/python -m bench.turns $(ARGS)

bench-middleware: $(BIN)/.with-test  ## what each shipped middleware adds to a turn (minutes)
	@$(BIN)/python -m bench.middleware $(ARGS)

bench-gates: $(BIN)/.with-bench  ## walk recorded conversations through the gates (../shared, or ARGS=FILE)
	@AGENTKIT_SHARED=$(SHARED) $(BIN)/python -m bench.gates $(ARGS)

bench-before-after: $(BIN)/.with-bench  ## a classic AgentExecutor and agentkit on one work list (takes minutes)
	@$(BIN)/python -m bench.before_after $(ARGS)

bench-tracing: $(BIN)/.with-dev  ## what recording runs costs and shows, beside OpenTelemetry's own LangChain instrumentation
	@test -e $(VENV)-otel/bin/python || $(PYTHON) -m venv $(VENV)-otel
	$(SAY) 'installing the other instrumentation into $(VENV)-otel'
	@$(VENV)-otel/bin/python -m pip --disable-pip-version-check install -qq -e '.[otel,sqlite]' \
	  'opentelemetry-instrumentation-genai-langchain==1.3b0'
	@$(VENV)-otel/bin/python -m bench.tracing_peer
	@$(VENV)-otel/bin/python -m bench.tracing --peer $(ARGS)

bench-checkpoints: $(BIN)/.with-dev  ## bytes and milliseconds per turn of long threads, on SQLite and PostgreSQL (minutes)
	@$(BIN)/python -m bench.checkpoints $(ARGS)

crash-test: $(BIN)/.with-dev  ## kill processes at random points, see what is lost (ARGS="--count 500 --seed 7")
	@$(BIN)/python -W ignore -m tests.crash.run $(ARGS)

docs serve: export NO_MKDOCS_2_WARNING = 1  # an advertisement, not a warning

docs: $(BIN)/.with-dev  ## build the documentation into site/; a broken link fails
	@$(BIN)/mkdocs build --strict --quiet
	@echo 'open site/index.html'

serve: $(BIN)/.with-dev  ## show the documentation at http://127.0.0.1:8000 while you write
	@$(BIN)/mkdocs serve

test-lowest:  ## the tests with the oldest dependencies that pyproject.toml claims, in .venv-lowest
	@$(PYTHON) scripts/lowest.py > .lowest.txt
	@test -e $(VENV)-lowest/bin/python || $(PYTHON) -m venv $(VENV)-lowest
	$(SAY) 'installing the oldest dependencies into $(VENV)-lowest'
	@$(VENV)-lowest/bin/python -m pip --disable-pip-version-check install -qq -e '.[test]' -c .lowest.txt
	$(SAY) 'pytest with the oldest dependencies'
	@$(VENV)-lowest/bin/python -m pytest -q -n $(JOBS) $(ARGS)

# Both install or import agentkit from the current folder; a stale build/ would bring deleted modules back.
peer: $(BIN)/.with-dev  ## LangChain's own agent tests against agentkit (needs ../shared)
	@if test -e $(SHARED)/peer_suite/peer_suite.sh; \
	then rm -rf build && bash $(SHARED)/peer_suite/peer_suite.sh; \
	else echo 'peer suite: $(SHARED)/peer_suite is not here; set SHARED=folder'; fi

probes: $(BIN)/.with-dev  ## what users of agent frameworks reported, asked of agentkit (needs ../shared)
	@if test -e $(SHARED)/probes/run.py; \
	then $(BIN)/python $(SHARED)/probes/run.py $(ARGS); \
	else echo 'probes: $(SHARED)/probes is not here; set SHARED=folder'; fi

upstream: $(BIN)/.with-dev  ## check the graphs of LangGraph's tests, or of a folder of pages (ARGS="--pages FOLDER")
	@bash scripts/upstream_graphs.sh $(BIN)/python $(ARGS)

clean:  ## remove environments, builds and caches
	@rm -rf $(VENV) $(VENV)-lowest $(VENV)-otel .venv-peers .upstream .lowest.txt build dist site *.egg-info .coverage* .*_cache .hypothesis
