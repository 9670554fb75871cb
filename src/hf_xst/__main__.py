"""`python -m hf_xst COMMAND ...` is `hf-xst COMMAND ...`."""

import sys

from hf_xst_cli import main

sys.exit(main())
