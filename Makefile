# Targets for people: demo, test, golden, lint, quick, lab, lab-smoke, lab-test, bench, soak, fuzz. Everything is installed into .venv, pinned by constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt
# A share of the tests that prove more cases, as in SHARE=2/3; all of them without it.
SHARE ?=
# Tests start hundreds of programs; without bytecode on disk each would compile all files again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test golden golden-accept test-exhaustive test-all quick lint lab lab-smoke lab-test lab-test-exhaustive bench bench-hostile bench-rules bench-dashboard bench-scaling soak fuzz clean help

help:
	@echo "make demo      install the command and analyse a sample capture"
	@echo "make test      install what the tests need and run them"
	@echo "make lint      ruff, mypy and import-linter"
	@echo "make golden    compare the answers for all samples with the accepted ones; GOLDEN=words chooses samples"
	@echo "make golden-accept  accept the answers as they are now: the reason belongs in the commit"
	@echo "make quick     run the tests that the changed files touch, and ruff on them"
	@echo "make test-exhaustive  run what make test leaves out: every version, sample and damage against every oracle"
	@echo "make test-all  both in one run, which is shorter than one after the other; SHARE=2/3 of the exhaustive ones"
	@echo "make lab       remake the sample captures with real servers and clients (root, Java, Maven, Go, Node, Mosquitto)"
	@echo "make lab-test  run the tests that need the real servers, or many runs of Spark"
	@echo "make lab-smoke  a few of these that take minutes: Kafka, Mosquitto and MongoDB's protocol live, a browser, Spark"
	@echo "make lab-test-exhaustive  the rest of these: every damage of every sample in an archive"
	@echo "make bench     measure speed and memory against tshark"
	@echo "make bench-hostile  hold what hostile messages and captures cost at most: processor time in lock-step, memory"
	@echo "make bench-rules  measure context and rules beside decoding, on a million messages"
	@echo "make soak      live decoding for ten minutes: flat memory (root); SOAK_SECONDS (600)"
	@echo "make bench-dashboard  measure the dashboard in a browser, on a million messages and on three days"
	@echo "make bench-scaling  measure archives on 1, 2, 4 and 8 workers with a part of a processor each (root)"
	@echo "make fuzz      feed broken input to every level, from blocks of captures to commands; FUZZ_SECONDS (600)"

demo: $(VENV)/.installed
	$(BIN)/wirewitness analyse sample_pcaps/kafka_stale_commit.pcapng

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; $(PYTHON) is older. Name another with make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }

$(VENV)/.installed: $(INPUTS) | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: $(INPUTS) | $(BIN)/python
	$(PIP) --editable '.[test]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-fuzz: $(VENV)/.installed-test
	$(PIP) --editable '.[test,fuzz]'
	@touch $@

$(VENV)/.installed-lab: $(VENV)/.installed-test
	$(PIP) --editable '.[test,lab]'
	@touch $@

test: $(VENV)/.installed-test
	@$(BIN)/python -m tests.support.programs captors
	$(BIN)/python -m pytest -m "not lab and not bench and not exhaustive" --numprocesses 2 --dist loadfile --no-loadscope-reorder

golden: $(VENV)/.installed-test
	$(BIN)/python -m tests.golden $(GOLDEN)

golden-accept: $(VENV)/.installed-test
	$(BIN)/python -m tests.golden $(GOLDEN) --accept

test-exhaustive: $(VENV)/.installed-test
	@$(BIN)/python -m tests.support.programs captors
	WIREWITNESS_TESTS=exhaustive $(BIN)/python -m pytest -m "exhaustive and not lab and not bench" --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-all: $(VENV)/.installed-test
	@$(BIN)/python -m tests.support.programs captors
	WIREWITNESS_SHARE=$(SHARE) WIREWITNESS_TESTS=exhaustive $(BIN)/python -m pytest -m "not lab and not bench" --numprocesses 2 --dist loadfile --no-loadscope-reorder

quick: $(VENV)/.installed-test
	@$(BIN)/python -m tests.support.quick

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lab: $(VENV)/.installed-lab
	@$(BIN)/python -m tests.support.programs lab
	$(BIN)/python -m tests.lab.make

lab-test: $(VENV)/.installed-lab
	@$(BIN)/python -m tests.support.programs lab
	WIREWITNESS_SHARE=$(SHARE) $(BIN)/python -m pytest -m "lab and not exhaustive" --numprocesses 2 --dist loadfile --no-loadscope-reorder

lab-smoke: $(VENV)/.installed-lab
	@$(BIN)/python -m tests.support.programs lab
	$(BIN)/python -m pytest -m smoke --numprocesses 2 --dist loadfile --no-loadscope-reorder

lab-test-exhaustive: $(VENV)/.installed-lab
	@$(BIN)/python -m tests.support.programs lab
	WIREWITNESS_TESTS=exhaustive $(BIN)/python -m pytest -m "lab and exhaustive" --numprocesses 2 --dist loadfile --no-loadscope-reorder

bench: $(VENV)/.installed-test
	@$(BIN)/python -m tests.support.programs captors
	$(BIN)/python -m tests.bench.run

bench-hostile: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m bench tests/bench

bench-rules: $(VENV)/.installed-test
	$(BIN)/python -m tests.bench.rules

soak: $(VENV)/.installed-test
	$(BIN)/python -m tests.bench.soak --seconds $(or $(SOAK_SECONDS),600)

bench-dashboard: $(VENV)/.installed-test
	@$(BIN)/python -m tests.support.programs browser
	$(BIN)/python -m tests.bench.dashboard

bench-scaling: $(VENV)/.installed-test
	$(BIN)/python -m tests.bench.scaling

fuzz: $(VENV)/.installed-fuzz
	$(BIN)/python -m tests.fuzz $(or $(FUZZ_SECONDS),600) --jobs 2 --slack $(or $(FUZZ_SLACK),1)

clean:
	rm -rf $(VENV) bench-out tests/lab/.work
