"""Run `hf-xst build-charts` under `accelerate launch` or `torchrun`."""

import sys

from hf_xst_cli import main

if __name__ == "__main__":
    sys.exit(main(["build-charts", *sys.argv[1:]]))
