# Everything a developer runs. Needs python3 (3.11 or newer), pip and make; the rest goes into .venv.

PYTHON = python3
PY = .venv/bin/python
PROGRAM = .venv/.program
READY = .venv/.ready

# Tests and the demo start many servers: the package is compiled once, not by each of them.
unexport PYTHONDONTWRITEBYTECODE

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 14

demo: $(PROGRAM) ## run the real server through its main job, over stdio
	@.venv/bin/mcp-memory demo

test: $(READY) ## run the tests but the slow ones; ARGS='-k canvas -x' goes to pytest
	$(PY) -m pytest -n auto --dist worksteal $(ARGS)

slow: $(READY) ## run the tests of a second or more each: programs that are started or killed, large memories
	$(PY) -m pytest -n auto --dist worksteal -m slow $(ARGS)

check: $(READY) ## formatting, lint and types
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m pyright

test-postgres: $(READY) ## run the contract of the store on PostgreSQL, which the tests start themselves, and all isolation tests
	$(PY) -m pytest -n auto --dist worksteal -m postgres $(ARGS)
	$(PY) -m pytest -n auto --store=postgres tests/isolation $(ARGS)

ROOMS = isolation longterm portable redteam server service shortterm

rooms-on-postgres: $(READY) ## run the tests of most folders with their memories in PostgreSQL: nightly
	$(PY) -m pytest -n auto --store=postgres -m 'not files and not slow and not postgres and not peers' \
	  $(addprefix tests/,$(ROOMS)) $(ARGS)

smoke: $(READY) ## run one conformance suite, one real client, and the main pages in a real browser
	$(PY) scripts/install_peers.py --smoke
	$(PY) -m scripts.browser --smoke
	$(PY) -m pytest -m smoke tests/peers tests/browser $(ARGS)

peers: $(READY) ## run the protocol tests against the official suites and the inspector
	$(PY) scripts/install_peers.py
	$(PY) -m pytest -m peers $(ARGS)

ui: $(READY) ## run the tests of the pages in a real browser: CHROME=program, the system's, or one from npm
	$(PY) -m scripts.browser
	$(PY) -m pytest -m browser $(ARGS)

docs: $(READY) ## build the documentation as a site, into build/site; every link must lead somewhere
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

bundle: $(READY) ## make the desktop extension, dist/mcp-memory-<version>.mcpb; needs npm's registry once
	$(PY) -m scripts.make_bundle

format: $(READY) ## put the code into shape
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

constraints: ## resolve the dependencies anew and pin what came out
	rm -rf build/fresh
	$(PYTHON) -m venv build/fresh
	build/fresh/bin/python -m pip install -q -e '.[dev]'
	build/fresh/bin/python -m pip freeze --exclude-editable > constraints.txt

clean: ## remove everything that can be made again
	rm -rf .venv .peers .demo build dist .pytest_cache .ruff_cache .hypothesis .coverage

.PHONY: help demo test slow test-postgres rooms-on-postgres smoke check peers ui docs bundle format constraints clean

# Some systems ship venv without the pip to put in it; then the pip beside PYTHON fills the environment.
$(PROGRAM): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "mcp-memory needs Python 3.11 or newer, and $(PYTHON) is `$(PYTHON) --version`." >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(PY) || { echo "Making an environment in .venv"; $(PYTHON) -m venv .venv 2>/dev/null; } || { \
	  $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python $(PY) install -q pip; }
	@echo "Installing mcp-memory there, with the libraries that it runs on (some 410 MB, ten seconds or twenty)"
	@scripts/install.sh render
	@touch $@

$(READY): $(PROGRAM)
	@echo "Installing what the tests need (some 750 MB, half a minute)"
	@scripts/install.sh dev
	@touch $@
