"""Run `hf-xst predict` under `accelerate launch` or `torchrun`."""

import sys

from hf_xst_cli import main

if __name__ == "__main__":
    sys.exit(main(["predict", *sys.argv[1:]]))
