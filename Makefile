# Everything a person does with a clone. `make` alone prints this list.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all faults guest-benchmark boot-benchmark guest-matrix kernel-panic lab-benchmark cloud-benchmark
.PHONY: engine-benchmark library-benchmark test-pythons lint format pulumi requirements clean

PYTHON ?= python3
REPORT ?= out/demo
demo_options = --report $(REPORT) $(if $(ZONES),--zones $(ZONES)) $(if $(PORT),--port $(PORT)) \
	$(if $(REPEAT),--repeat $(REPEAT)) $(if $(BOOT_DELAY),--boot-delay $(BOOT_DELAY)) $(if $(ENGINE),--engine $(ENGINE))

# Most tests of the lab wait more than they work; what shares a module's fixtures stays together.
side_by_side = --numprocesses 2 --dist loadscope

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install what demo and test need (they call it themselves)
	@PYTHON=$(PYTHON) tools/setup.sh

demo: setup ## Fleet in the lab, a router killed under traffic, the pause as a table and a plot (ZONES= REPEAT= BOOT_DELAY= PORT= ENGINE= REPORT=)
	@exec .venv/bin/multinic lab demo $(demo_options)

test: setup ## All tests but the slow ones
	@exec .venv/bin/python -m pytest $(side_by_side) -m "not slow"

test-all: test ## All tests: those of `make test`, then the slow ones
	@exec .venv/bin/python -m pytest $(side_by_side) -m slow

faults: setup ## What each of 40 faults does to a router and to connections through it, as a table (root, some 5 minutes)
	@exec .venv/bin/python tests/guest/faults.py --out out/faults.json

guest-benchmark: setup ## The guest's own figures as ratios: apply, forwarding, repair, idle (root)
	@exec .venv/bin/python tests/guest/benchmark.py

boot-benchmark: setup ## From startup.sh to both ports 200 in a guest, by phases (root)
	@exec .venv/bin/python tests/lab/guests/boot_benchmark.py

guest-matrix: setup ## Routers on Debian 11, 12 and 13, beside the guest agent, networkd and NetworkManager (root, some 15 minutes)
	@exec .venv/bin/python tests/lab/guests/matrix.py --out out/guest-matrix.json

kernel-panic: setup ## kpanic panics Debian's own kernel in QEMU, which reboots (root, some minutes)
	@exec .venv/bin/python tests/lab/guests/kernel_panic.py

cloud-benchmark: setup ## The lab's packets and `pulumi up` with guests, as ratios (root, some 3 minutes; PORT=)
	@exec .venv/bin/python tests/lab/benchmark.py $(if $(PORT),--port $(PORT))

lab-benchmark: setup ## Requests a second and memory of a lab without guests, 40 routers in 20 networks (PORT=)
	@exec .venv/bin/python tests/lab/api/benchmark.py $(if $(PORT),--port $(PORT))

engine-benchmark: setup ## Who works how much in `pulumi up` of the dev stack: engine and SDK, stand-ins, lab
	@exec .venv/bin/python tests/engine/benchmark.py

library-benchmark: setup ## What the library costs a program beside the SDK, and how it grows: ratios
	@PYTHONPATH=. exec .venv/bin/python tests/unit/benchmark.py

test-pythons: setup ## Unit tests with every Python from 3.11 on that this machine has; OLDEST=1: with the oldest Pulumi packages
	@tools/pythons.sh

lint: setup ## ruff, mypy --strict, shellcheck, systemd-analyze verify, actionlint
	@tools/lint.sh

format: setup ## Let ruff format the Python files
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

pulumi: setup ## Build the Pulumi CLI, and what programs in YAML and TypeScript need, into a user cache (9 minutes on two cores)
	@exec .venv/bin/python -m multinic.lab.pulumi.cli build

requirements: setup ## Compile requirements.txt anew from pyproject.toml
	@.venv/bin/pip-compile --quiet --upgrade --all-extras --no-header --strip-extras --no-emit-index-url \
		--no-emit-find-links --no-emit-trusted-host --output-file requirements.txt pyproject.toml

clean: ## Remove .venv, build results, reports, and whatever a killed lab left
	@if [ -x .venv/bin/multinic ]; then .venv/bin/multinic lab clean; fi
	@rm -rf .venv out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
