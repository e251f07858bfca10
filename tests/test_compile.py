"""Models compile into one graph. The annotation checks of this run would break it: they have their own process."""

import subprocess
import sys

PROGRAM = """
import torch
from ttutor.transformer import Transformer, TransformerConfig

torch.manual_seed(0)
sizes = {"d_model": 12, "n_heads": 3, "n_layers": 1, "d_ff": 20, "max_len": 16}
model = Transformer(TransformerConfig(vocab_size=50, **sizes)).eval()
source_ids, target_ids = torch.randint(0, 50, (2, 7)), torch.randint(0, 50, (2, 5))
compiled = torch.compile(model, fullgraph=True, backend="eager")
torch.testing.assert_close(compiled(source_ids, target_ids), model(source_ids, target_ids))

from ttutor.efficient import efficient_attention
from ttutor.masks import Mask
from ttutor.variants.gpt import GPT, GPTConfig

gpt = GPT(GPTConfig(vocab_size=50, positions="rotary", **sizes)).eval()
compiled = torch.compile(gpt, fullgraph=True, backend="eager", dynamic=True)
for token_ids in (source_ids, torch.randint(0, 50, (3, 11))):
    torch.testing.assert_close(compiled(token_ids), gpt(token_ids))

query, key, value = (torch.randn(2, 4, n, 8, requires_grad=True) for n in (70, 80, 80))
lengths = torch.tensor([80, 9])
calls = [{"causal": True}, {"window": 5, "mask": Mask(key_lengths=lengths)}]
attend = torch.compile(efficient_attention, fullgraph=True, backend="aot_eager")
for call in calls:
    mine, expected = (f(query, key, value, **call) for f in (attend, efficient_attention))
    torch.testing.assert_close(mine, expected)
    gradients = [torch.autograd.grad(output.sum(), (query, key, value)) for output in (mine, expected)]
    torch.testing.assert_close(*gradients)
print("compiled into one graph")
"""


def test_models_and_the_attention_call_compile_into_one_graph():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == "compiled into one graph"
