"""Render the example cards in model_cards/ from the records in tests/hub/recorded/."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hf_xst.hub.card import README, write_card
from hf_xst.hub.pictures import TABLE, TREE

REPOSITORY = Path(__file__).resolve().parent.parent
RECORDED = REPOSITORY / "tests" / "hub" / "recorded"


def main(argv: Sequence[str] | None = None) -> None:
    """Render each folder of records to a folder of the same name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "model_cards")
    output = parser.parse_args(argv).output
    for recorded in sorted(RECORDED.iterdir()):
        target = output / recorded.name
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / recorded.name
            shutil.copytree(recorded, folder)
            write_card(folder)
            for name in (README, TREE, TABLE):
                shutil.copyfile(folder / name, target / name)
        print(target.relative_to(output.parent))


if __name__ == "__main__":
    main()
