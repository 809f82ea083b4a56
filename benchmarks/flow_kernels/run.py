"""Run the script of a paper with the fused kernels; arguments as of `unweave paper run`.

python benchmarks/flow_kernels/run.py gin/figure-3
python benchmarks/flow_kernels/run.py self-supervised-gin/figure-4
"""

import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.flow_kernels.fused import install
from unweave.cli.main import main

if __name__ == "__main__":
    if torch.cuda.is_available():  # the kernels cannot be compiled, nor vectorized over models
        os.environ.setdefault("UNWEAVE_STRATEGY", "fork")
    install()
    main(["paper", "run", *sys.argv[1:]])
