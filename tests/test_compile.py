"""The model compiles into one graph. The annotation checks of this run would break it: it has its own process."""

import subprocess
import sys

PROGRAM = """
import torch
from ttutor.transformer import Transformer, TransformerConfig

torch.manual_seed(0)
model = Transformer(TransformerConfig.tiny(vocab_size=50)).eval()
source_ids, target_ids = torch.randint(0, 50, (2, 7)), torch.randint(0, 50, (2, 5))
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
torch.testing.assert_close(compiled(source_ids, target_ids), model(source_ids, target_ids))
print("compiled into one graph")
"""


def test_the_whole_model_compiles_into_one_graph():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == "compiled into one graph"
