# ttutor: `make book` builds the book, `make test` runs every check. Both set up all they need.
# On Windows without make, book/setup.md gives the plain commands.

VENV   ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
PORT   ?= 8000
# Where your own copies of the chapters go
COURSE ?= my-course
# Options for JupyterLab, for example --no-browser --port 8899
LAB    ?=
# JupyterLab starts for root, as in many containers, only if it is told to
AS_ROOT := $(if $(filter 0,$(shell id -u 2>/dev/null)),--allow-root)
# Where PyTorch alone comes from, for example https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=

PY      := $(VENV)/bin/python
PIP     := $(PY) -m pip --disable-pip-version-check
STAMP   := $(VENV)/.installed
SECONDS := $(VENV)/.install-seconds
BOUNDS  := .venv-bounds
UV      := $(BOUNDS)/bin/uv pip install --python $(BOUNDS)/bin/python
TORCH   := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)

.DEFAULT_GOAL := help
.PHONY: help install book pdf zip dist test notebooks student instructor experiments lab edit serve bench soak bounds clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  make TORCH_INDEX=https://download.pytorch.org/whl/cpu book"
	@echo "                    take PyTorch's small CPU build (Linux; needed once, at the first install)"
	@echo "  make PAPER=letter pdf"
	@echo "                    print on American paper"
	@echo "  make LAB=\"--no-browser --port 8899\" lab"
	@echo "                    open the chapters with JupyterLab's own options"
	@echo "  make LAX=1 test   execute the notebooks without comparing their outputs"

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found: install one, or name it with make PYTHON=..."; exit 1; }
	@echo "Setting up $(VENV): this takes some minutes and about 2 GB of disk"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@date +%s > $(VENV)/.install-started
	@test -z "$(TORCH_INDEX)" || $(PIP) install --no-deps --index-url "$(TORCH_INDEX)" "$(TORCH)"
	$(PIP) install --no-compile --progress-bar off -c constraints.txt -e ".[dev]"
	@echo $$(( $$(date +%s) - $$(cat $(VENV)/.install-started) )) > $(SECONDS)
	@touch $@

install: $(STAMP)  ## set up .venv with the pinned packages and this project
	@echo "Ready. Next: make lab (the chapters in JupyterLab) or make book (the pages)"

book: $(STAMP)  ## build the book and say where to open it
	$(PY) -m book._tools.build

pdf: book  ## print the whole book to _build/html/ttutor.pdf (needs a Chromium)
	$(PY) -m book._tools.pdf $(if $(PAPER),--paper $(PAPER))

zip: book  ## the built book as one file to hand out, into _build (make pdf zip: with the PDF)
	$(PY) -m release.book_zip

dist: $(STAMP)  ## the package to publish, as wheel and source distribution, into dist
	rm -rf dist
	$(PY) -m build --no-isolation

test: $(STAMP)  ## every check: lint, unit tests, notebooks, built book, trainer
	$(PY) -m tests.run $(if $(LAX),--lax)

notebooks: $(STAMP)  ## execute the notebooks in place and normalise them
	$(PY) -m book._tools.notebooks $(if $(REFRESH),--refresh) $(NOTEBOOKS)

student: $(STAMP)  ## the notebooks for students, without solutions, into _build/student
	$(PY) -m book._tools.editions student

instructor: $(STAMP)  ## the notebooks with solutions and the known mistakes, into _build/instructor
	$(PY) -m book._tools.editions instructor

experiments: $(STAMP)  ## run the long experiments again (minutes each)
	@set -e; for script in experiments/[!_]*.py; do echo "$$script"; $(PY) "$$script"; done

lab: $(STAMP)  ## read and run the chapters in JupyterLab, as copies of your own in my-course
	$(PY) -m book._tools.lab $(COURSE)
	JUPYTER_CONFIG_PATH=book/_tools:$$JUPYTER_CONFIG_PATH $(PY) -m jupyterlab $(AS_ROOT) \
		--LabApp.default_url=/lab/tree/00-start.ipynb $(LAB) $(COURSE)

edit: $(STAMP)  ## change the sources of the chapters in JupyterLab, which saves them normalised
	TTUTOR_PROGRESS=none $(PY) -m jupyterlab --FileContentsManager.pre_save_hook=book._tools.notebooks.before_saving book

serve: book  ## build the book and serve it on this machine
	$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

bench: $(STAMP)  ## measure speed and write benchmarks/results/
	@set -e; for script in benchmarks/[!_]*.py; do echo "$$script"; $(PY) "$$script"; done

soak: $(STAMP)  ## the exhaustive forms of the tests (long)
	$(PY) -m book._tools.build
	$(PY) -m pytest -m soak

bounds: $(STAMP)  ## the unit tests on the lowest versions that pyproject.toml allows
	$(PY) -m venv --clear $(BOUNDS)
	$(BOUNDS)/bin/python -m pip install --quiet uv
	$(UV) --resolution lowest-direct --no-build $(if $(TORCH_INDEX),--torch-backend cpu) -r pyproject.toml --all-extras
	$(UV) --no-deps -e .
	$(BOUNDS)/bin/python -m pytest -q -n 2 -W default -m "not soak and not trainer and not browser"

clean:  ## remove what was built, the environment included
	rm -rf $(VENV) $(BOUNDS) _build dist book/_generated .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
