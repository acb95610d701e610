# make demo [FILE=x.npy] | bench [OP=softmax] [PEERS='torch ...'] | test [PEERS=torch] [TESTS='-m torch'] | test-quick |
# test-versions | lint | types | docs | kernels | wheel | clean.
# Each makes the virtual environment that it needs first: .venv.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m
PIP := $(RUN) pip --disable-pip-version-check install --quiet --no-compile
comma := ,

# The CuPy to install goes by the newest CUDA that the driver of the GPU serves; empty without a GPU.
# (nvidia-smi calls that "CUDA Version", from driver 610 on "CUDA UMD Version".)
GPU = $(shell nvidia-smi -L 2>/dev/null | grep '^GPU')
CUDA = $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA [A-Z ]*Version *: *\([0-9][0-9]*\).*/\1/p')
CAPABILITY = $(sort $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep '^[0-9.]*$$')))
CUPY = $(if $(GPU),$(shell test 0$(CUDA) -ge 13 && echo cuda13 || echo cuda12))
# Without a GPU the tests still compile the kernels, with CuPy and NVRTC alone: the whole toolkit is large.
COMPILER = $(if $(CUPY),,'cupy-cuda13x>=14' 'nvidia-cuda-nvrtc>=13,<14')

.PHONY: demo bench test test-quick test-versions lint types docs kernels wheel clean

demo: $(VENV)/demo.stamp
	$(RUN) gpuops demo $(FILE)

bench: $(VENV)/bench.stamp
	$(if $(PEERS),$(PIP) $(PEERS))
	$(RUN) gpuops bench $(OP)

test: lint types
	$(if $(PEERS),$(PIP) $(PEERS))
	$(RUN) pytest -n auto --dist worksteal $(TESTS)

test-quick: $(VENV)/test.stamp
	GPUOPS_TEST_PROFILE=quick $(RUN) pytest -n auto --dist worksteal

test-versions: $(VENV)/test.stamp
	$(RUN) tests.versions

lint: $(VENV)/test.stamp
	$(RUN) ruff check

types: $(VENV)/test.stamp
	$(RUN) mypy

docs: $(VENV)/docs.stamp
	$(RUN) sphinx --quiet --fresh-env --fail-on-warning --keep-going --builder html docs build/docs

# The kernels of small arrays and the commonest others, for the GPU that is here, so that first calls need not compile.
kernels: $(VENV)/kernels.stamp
	$(VENV)/kernels/bin/python -m gpuops kernels $(if $(CAPABILITY),--arch $(CAPABILITY))

# The same for all common GPUs, in a wheel.
wheel: $(VENV)/kernels.stamp
	$(VENV)/kernels/bin/python -m gpuops kernels
	$(VENV)/kernels/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist gpuops/prebuilt docs/api/generated *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/created.stamp: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

# The eval asks nvidia-smi once per recipe.
$(VENV)/demo.stamp: $(VENV)/created.stamp
	$(eval CUPY := $(CUPY))
	$(PIP) --editable '.[$(or $(CUPY),cpu)]'
	touch $@

$(VENV)/bench.stamp: $(VENV)/created.stamp
	$(eval CUPY := $(CUPY))
	$(PIP) --editable '.[bench,$(or $(CUPY),cpu)]'
	touch $@

$(VENV)/docs.stamp: $(VENV)/created.stamp
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/test.stamp: $(VENV)/created.stamp
	$(eval CUPY := $(CUPY))
	$(PIP) --editable '.[test$(CUPY:%=$(comma)%)]' $(COMPILER)
	touch $@

# What NVRTC of CUDA 12 makes, drivers of CUDA 12 and 13 load.
$(VENV)/kernels.stamp: $(VENV)/created.stamp
	$(PYTHON) -m venv --clear $(VENV)/kernels
	$(VENV)/kernels/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --editable . \
		'cupy-cuda12x>=14' 'nvidia-cuda-nvrtc-cu12>=12.9,<13' ml_dtypes
	touch $@
