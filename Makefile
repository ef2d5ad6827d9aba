# Two commands: `make lab` to learn, `make test` to test everything. What they do is written in lesson_lib/cli/ and tests/parts.py.
PYTHON ?= python3
TORCH ?=
VENV := .venv
RUN := $(VENV)/bin/python
LEARN := $(VENV)/.learn$(TORCH)
TEST := $(VENV)/.test$(TORCH)
TEACH := $(VENV)-class/.class$(TORCH)
TEACHER := $(VENV)-class/bin/python
SITE := $(VENV)-site/.site
# Help and copies need no package: any Python that fits gives them, and nothing is installed.
ASKED := $(filter -h --help --copy-only,$(ARGS))
FIRST := $(if $(ASKED),,$(LEARN))
ANY := $(if $(ASKED),$(PYTHON) lesson_lib/cli/preflight.py python && $(PYTHON),$(RUN))
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help requirements release-check setup setup-test setup-class lab capstone doctor ring test browser notebooks figures experiments bench slides script handouts site assignments collect class class-report test-gpu test-quick

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {own = $$1 ~ /^(lab|capstone|doctor|ring)$$/; \
	  list[own] = list[own] sprintf("  make %-12s %s\n", $$1, $$2)} \
	  END {print "A learner needs:\n" list[1] "\nThe rest:\n" list[0]}' $(MAKEFILE_LIST)
	@echo '  PYTHON=python3.12 chooses the Python, TORCH=2.11.0 another torch than the pinned one'

setup: $(LEARN)  ## make .venv and install what a learner needs (nothing outside this folder)
	@echo 'Ready. To start: make lab'
setup-test: $(TEST)
setup-class: $(TEACH)  ## make .venv-class for instructors: slides, grading, a server for a class (Linux, macOS)

lab: $(FIRST)  ## open the lessons in JupyterLab, in your own copies (folder work/)
	@$(ANY) -m lesson_lib lab $(ARGS)

capstone: $(FIRST)  ## your own Transformer, in work/capstone.py: make the file, then judge it (one stage: ARGS='--stage 1')
	@$(ANY) -m lesson_lib capstone $(ARGS)

doctor: $(LEARN)  ## look at the machine and the installation, and say what to mend
	@$(RUN) -m lesson_lib doctor

ring: $(LEARN)  ## attention over 1, 2, 3 and 4 processes, measured (longer: make ring ARGS='--tokens 32768')
	@echo 'Exact attention over tokens that are split among processes: seconds, memory, and the difference from one process'
	@for p in 1 2 3 4; do OMP_NUM_THREADS=1 $(RUN) -m torch.distributed.run --standalone --local-addr localhost --nproc-per-node $$p \
	  -m lesson_lib ring $(ARGS) || exit 1; done

slides: $(TEACH)  ## slides that need no network: of the parts (some: ARGS=03), or of a plan: make slides PLAN=half-day
	@$(TEACHER) -m lesson_lib slides $(if $(PLAN),--plan $(PLAN)) $(ARGS)

script: $(TEACH)  ## a session on paper, each slide with what to say: make script PLAN=half-day
	@$(TEACHER) -m lesson_lib script $(or $(PLAN),half-day) $(ARGS)

site: $(TEST) $(SITE)  ## the course as pages for any browser, without a network (build/site)
	@$(RUN) -m lesson_lib site $(ARGS)

release-check: $(TEST) $(SITE) browser  ## all that a version consists of, made and looked at, nothing published
	@$(RUN) -m tools.release

handouts: $(TEACH)  ## what a session needs on paper, as PDF: make handouts PLAN=half-day (chosen pages: ARGS='test_a test_b')
	@$(TEACHER) -m lesson_lib handouts $(if $(PLAN),--plan $(PLAN)) $(ARGS)

assignments: $(TEACH)  ## make nbgrader's release versions of the exercises (some: make assignments ARGS=03)
	@$(TEACHER) -m lesson_lib assignments $(ARGS)

class: $(TEACH)  ## one JupyterHub for a class, on this machine (how: class/README.md)
	@$(TEACHER) -m lesson_lib class $(ARGS)

collect: $(TEACH)  ## take in what the class server's students have done of an assignment (some: make collect ARGS=03)
	@$(TEACHER) -m lesson_lib collect $(ARGS)

class-report: $(TEACH)  ## a page on what the class has done, of learners who ran export_progress() on the hub
	@mkdir -p build && $(TEACHER) -m lesson_lib report class/data/homes --to build/class_report.html $(ARGS)

# The class kit is tested where its environment is; CI=true makes it first (LESSON_CLASS=skip skips it there too).
test: $(TEST) browser $(if $(filter true,$(CI)),$(if $(filter skip,$(LESSON_CLASS)),,$(TEACH)) $(SITE))  ## everything: unit tests, doctests, import rules, notebooks, browser, class kit
	@$(RUN) tests/parts.py

test-quick: $(TEST)  ## three minutes: ruff, import rules, doctests, the core, and the tests and notebooks of what changed
	@$(RUN) -m tests.quick

# No environment of ours: the machine's torch, and wheels that are collected where there is a network (tests/gpu/gather.sh).
test-gpu:  ## unit tests, notebooks, the lessons' curves on a GPU, with the torch that PYTHON has (some: make test-gpu ARGS=unit)
	@PYTHON="$(PYTHON)" bash tests/gpu/run.sh $(ARGS)

notebooks: $(TEST)  ## build notebooks/*.ipynb from notebooks/source (some: make notebooks ARGS=02)
	@$(RUN) -m lesson_lib build $(ARGS)

figures: $(TEST)  ## draw figures/ again
	@$(RUN) -m lesson_lib figures

# torch brings what its build for a GPU needs: not listed, so that a CPU build stays one.
requirements:  ## renew the pins of requirements.txt, with uv (to the newest: make requirements ARGS=--upgrade)
	@mkdir -p build && cp requirements.txt build/pins.txt
	@uv pip compile pyproject.toml --extra lab --universal --python-version 3.11 --no-header --no-annotate $(ARGS) -q -o build/pins.txt
	@{ sed '/^-e/q' requirements.txt; grep -vE '^(nvidia-|cuda-|triton)' build/pins.txt; } > build/requirements.txt
	@mv build/requirements.txt requirements.txt

experiments: $(TEST)  ## run the long experiments again (some: make experiments ARGS=scores)
	@$(RUN) -m lesson_lib experiments $(ARGS)

bench: $(TEST)  ## time the library and the widgets (reports, never fails on a time)
	@$(RUN) -m pytest tests/benchmarks -o python_files='bench_*.py' $(ARGS)

# A Chromium for the browser tests: installed where we are root on Debian, asked for elsewhere. Without one those tests are
# skipped on a person's machine, and fail where CI=true (LESSON_BROWSER=skip skips them there too).
browser:
	@if [ "$$LESSON_BROWSER" = skip ] || $(RUN) lesson_lib/cli/chromium.py; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo 'Installing Chromium for the browser tests ...'; \
	  { apt-get update && apt-get install -y --no-install-recommends chromium; } > $(VENV)/chromium.log 2>&1 \
	  || { tail -n 20 $(VENV)/chromium.log; echo 'chromium could not be installed'; }; \
	else echo 'No Chromium for the browser tests. On Debian: sudo apt-get install chromium; elsewhere: install Chrome.'; fi

$(LEARN): requirements.txt pyproject.toml
	@$(call install,requirements.txt,$(VENV)) && touch $@

$(TEST): requirements-test.txt requirements.txt pyproject.toml
	@$(call install,requirements-test.txt,$(VENV)) && touch $(LEARN) $@

# The same steps in an environment of its own; then the packages of class/package.json, by the npm that pip has brought there.
$(TEACH): requirements-class.txt requirements.txt pyproject.toml class/package.json class/package-lock.json
	@$(call install,requirements-class.txt,$(VENV)-class)
	@cp class/package.json class/package-lock.json $(VENV)-class/
	@cd $(VENV)-class && PATH="$$PWD/bin:$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# What makes the site needs no torch: Sphinx, and two packages of npm.
$(SITE): requirements-site.txt site/package.json site/package-lock.json
	@test -x $(VENV)-site/bin/pip || { echo 'Making $(VENV)-site ...' && $(PYTHON) -m venv $(VENV)-site; }
	@$(VENV)-site/bin/python lesson_lib/cli/preflight.py install requirements-site.txt
	@cp site/package.json site/package-lock.json $(VENV)-site/
	@cd $(VENV)-site && PATH="$$PWD/bin:$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# 1. preflight; 2. the environment $(2); 3. the pins (TORCH in the place of ours), whatever fits already is kept. A stamp follows.
define install
$(PYTHON) lesson_lib/cli/preflight.py && \
{ test -x $(2)/bin/pip || { echo 'Making $(2) ...' && $(PYTHON) -m venv $(2); }; } && \
$(2)/bin/python lesson_lib/cli/preflight.py torch $(TORCH) && \
for file in requirements.txt $(1); do \
  sed '$(if $(TORCH),s/^torch==.*/torch==$(TORCH)/)' $$file > $(2)/$$file; done && \
$(2)/bin/python lesson_lib/cli/preflight.py install $(2)/$(1) && \
rm -f $(2)/.learn* $(2)/.test* $(2)/.class*
endef
