"""`hf-xst build-charts` for launchers, in one process: same flags, same function."""

import sys

from hf_xst_cli import main

if __name__ == "__main__":
    sys.exit(main(["build-charts", *sys.argv[1:]]))
