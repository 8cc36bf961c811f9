# The two commands of the README, and the ones for working on the project.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EMULATE ?= cann=8.5.0,soc=a3
LISTEN ?= 127.0.0.1:9877
STATE ?= $(CURDIR)/build/state
TARGET ?=
SECONDS ?= 60
RUNS ?= -1

SCRIPTS := .ci/run deploy/gate/with-gate images/injector/inject images/injector/capture-canary tests/tools/get-actionlint tests/tools/get-debian13 scripts/get-grype

.PHONY: run probe test test-real test-long fuzz lint format docs bench bench-statistics soak bench-failing bench-fuzzing mutants lock audit clean

run: $(VENV)/installed ## the daemon on the emulated CANN; a page at http://$(LISTEN)/
	$(BIN)/capture-canary run --emulate $(EMULATE) --listen $(LISTEN) --state-dir $(STATE) \
	  --set lock_file=$(STATE)/probe.lock --set trace_dir=$(STATE)/traces \
	  --set probe.interval=1m --set probe.jitter=0s --set probe.deadline=20s

probe: $(VENV)/installed ## one probe on the emulated CANN
	-$(BIN)/capture-canary probe --emulate $(EMULATE)

test: $(VENV)/test ## the tests that need nothing but Python and a C compiler
	$(BIN)/pytest -n 2 -m "not real and not long"

test-real: $(VENV)/test ## the tests against real torch-npu, dockerd, Prometheus, …: what is missing is skipped and named
	$(BIN)/pytest -m "real and not long"

test-long: $(VENV)/test ## those of both that CI has no time for
	$(BIN)/pytest -m long

fuzz: $(VENV)/fuzz ## coverage-guided: TARGET= one or several (all), SECONDS= and RUNS= for each of them
	$(BIN)/python -m tests.fuzz $(TARGET) --seconds $(SECONDS) --runs $(RUNS)

lint: $(VENV)/test
	! git grep -nE '^(<<<<<<<|>>>>>>>) ' # no half-merged file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/hadolint images/Dockerfile images/*/*Dockerfile
	$(BIN)/shellcheck $(SCRIPTS)
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec deploy/docker/compose.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet --persona=pedantic .github/workflows

format: $(VENV)/test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/test ## what is made from the code: in docs/, rules/, grafana/ and the chart's copies of these
	$(BIN)/python docs/generate.py
	$(BIN)/python helm/generate.py
	$(BIN)/python -m monitoring

bench: $(VENV)/test ## every figure of the README
	$(BIN)/python bench/run.py

bench-statistics: $(VENV)/test ## every figure of docs/statistics.md: half an hour
	$(BIN)/python -m bench.statistics

soak: $(VENV)/test ## emulated months of one daemon, docs/reliability.md: an hour and more
	nice $(BIN)/python -m bench.soak

bench-failing: $(VENV)/test ## every allocation and system call of the C parts fails, one a run: half an hour
	$(BIN)/python -m bench.failing

bench-fuzzing: $(VENV)/test ## what others can write into what the C parts read, with libFuzzer: half an hour
	$(BIN)/python -m bench.fuzzing

mutants: $(VENV)/test ## changes of MODULE ("gate trend/law.py"; else all of docs/mutation.md) that no test notices
	$(BIN)/python -m pip install --quiet --group mutation
	nice $(BIN)/python -m bench.mutation $(MODULE)

lock: $(VENV)/python ## the locked dependencies of images and of a release, anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python scripts/lock

audit: $(VENV)/python ## the locked dependencies against known vulnerabilities; what cannot be looked up fails
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r images/requirements.txt -r images/extras.txt

clean:
	rm -rf $(VENV) build

C_PARTS := $(shell find daemon -name '*.[ch]' -o -name 'CMakeLists.txt')

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Capture Canary needs Python 3.10 or newer; say which with PYTHON=…"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# Editable: changes of Python files show at once; the C parts are built again when one of them changed.
$(VENV)/installed: $(VENV)/python pyproject.toml $(C_PARTS)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/test: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable . --group test --group lint
	touch $@

$(VENV)/fuzz: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable . --group fuzz
	touch $@
