# Two commands: `make lab` to learn, `make test` to test everything. What they do is written in lesson_lib/cli/ and tests/parts.py.
PYTHON ?= python3
TORCH ?=
VENV := .venv
RUN := $(VENV)/bin/python
LEARN := $(VENV)/.learn$(TORCH)
TEST := $(VENV)/.test$(TORCH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup setup-test lab doctor ring test browser notebooks figures experiments bench

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  PYTHON=python3.12 chooses the Python, TORCH=2.11.0 another torch than the pinned one'

setup: $(LEARN)  ## make .venv and install what a learner needs (nothing outside this folder)
	@echo 'Ready. To start: make lab'
setup-test: $(TEST)

lab: $(LEARN)  ## open the lessons in JupyterLab, in your own copies (folder work/)
	@$(RUN) -m lesson_lib lab $(ARGS)

doctor: $(LEARN)  ## look at the machine and the installation, and say what to mend
	@$(RUN) -m lesson_lib doctor

ring: $(LEARN)  ## attention over 1, 2, 3 and 4 processes, measured (longer: make ring ARGS='--tokens 32768')
	@echo 'Exact attention over tokens that are split among processes: seconds, memory, and the difference from one process'
	@for p in 1 2 3 4; do OMP_NUM_THREADS=1 $(RUN) -m torch.distributed.run --standalone --nproc-per-node $$p \
	  -m lesson_lib ring $(ARGS) || exit 1; done

test: $(TEST) browser  ## everything: unit tests, doctests, floors, notebooks, browser
	@$(RUN) tests/parts.py

notebooks: $(TEST)  ## build notebooks/*.ipynb from notebooks/source (some: make notebooks ARGS=02_scoring)
	@$(RUN) -m lesson_lib build $(ARGS)

figures: $(TEST)  ## draw figures/ again
	@$(RUN) -m lesson_lib figures

experiments: $(TEST)  ## run the long experiments again (some: make experiments ARGS=scores)
	@$(RUN) -m lesson_lib experiments $(ARGS)

bench: $(TEST)  ## time the library and the widgets (reports, never fails on a time)
	@$(RUN) -m pytest tests/benchmarks -o python_files='bench_*.py' $(ARGS)

# A Chromium for the browser tests: installed where we are root on Debian, asked for elsewhere. Without one those tests are
# skipped on a person's machine, and fail where CI=true (LESSON_BROWSER=skip skips them there too).
browser:
	@if [ "$$LESSON_BROWSER" = skip ] || $(RUN) tests/browser/chromium.py; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -q && apt-get install -y -q --no-install-recommends chromium || echo 'chromium could not be installed'; \
	else echo 'No Chromium for the browser tests. On Debian: sudo apt-get install chromium; elsewhere: install Chrome.'; fi

$(LEARN): requirements.txt pyproject.toml
	@$(call install,requirements.txt)

$(TEST): requirements-test.txt requirements.txt pyproject.toml
	@$(call install,requirements-test.txt)
	@touch $(LEARN)

# 1. preflight; 2. the environment; 3. the pins (TORCH in the place of ours), whatever fits already is kept; 4. a stamp.
define install
$(PYTHON) lesson_lib/cli/preflight.py && \
{ test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV); } && \
$(RUN) lesson_lib/cli/preflight.py torch $(TORCH) && \
for file in requirements.txt requirements-test.txt; do \
  sed '$(if $(TORCH),s/^torch==.*/torch==$(TORCH)/)' $$file > $(VENV)/$$file; done && \
echo 'Installing $(1) into $(VENV) ...' && \
{ $(RUN) -m pip install -r $(VENV)/$(1) || $(RUN) lesson_lib/cli/preflight.py failed; } && \
rm -f $(VENV)/.learn* $(VENV)/.test* && touch $@
endef
