from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from helpers.tiny_models import SENTENCES, loud, tagger, tagger_config
from hf_xst import CrfTagger

# Everything in one process of its own: the client reads its endpoint when it is first imported.
ROUND_TRIP = """
import json, os, sys
from pathlib import Path

work = Path(sys.argv[1])
sys.path.insert(0, sys.argv[2])
from helpers.hub_server import serve

server = serve(work / "hub")
os.environ["HF_ENDPOINT"] = server.url
import hf_xst
from safetensors.torch import save_file
from transformers import AutoModel

sentences = json.loads(sys.argv[3])
found = {}
for name in ("vectors", "encoder"):
    model = AutoModel.from_pretrained(work / name)
    model.push_to_hub(f"tester/{name}")
    model.save_pretrained(work / "again" / name, push_to_hub=True, repo_id=f"tester/{name}-again")
    for repository in (name, f"{name}-again"):
        loaded = AutoModel.from_pretrained(f"tester/{repository}", revision="main")
        found[repository] = loaded(words=sentences).scores.detach()
save_file(found, work / "found.safetensors")
server.shutdown()
server.server_close()
"""


@pytest.mark.slow
def test_models_load_from_a_hub(bert: Path, tmp_path: Path) -> None:
    tools = Path(__file__).resolve().parent.parent
    models = {"vectors": loud(tagger()), "encoder": CrfTagger.from_encoder(tagger_config(), bert).eval()}
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
    settings = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": "hf_test",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": str(torch.get_num_threads()),
    }
    run = subprocess.run(
        [sys.executable, "-c", ROUND_TRIP, str(tmp_path), str(tools), json.dumps(SENTENCES)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    result = load_file(tmp_path / "found.safetensors")
    assert len(result) == 4
    for name, scores in result.items():
        assert torch.equal(scores, models[name.removesuffix("-again")](words=SENTENCES).scores)
