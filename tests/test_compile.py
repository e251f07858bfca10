"""A model compiles into one graph. The annotation checks of this run would break it: they have their own process."""

import subprocess
import sys

PROGRAM = """
import torch
from ttutor.efficient import efficient_attention
from ttutor.masks import Mask
from ttutor.variants.gpt import GPT, GPTConfig

torch.manual_seed(0)
config = GPTConfig(vocab_size=50, positions="rotary", d_model=12, n_heads=3, n_layers=1, d_ff=20, max_len=16)
gpt = GPT(config).eval()
compiled = torch.compile(gpt, fullgraph=True, backend="eager", dynamic=True)
for shape in ((2, 7), (3, 11)):
    token_ids = torch.randint(0, 50, shape)
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


def test_a_model_and_the_attention_call_compile_into_one_graph():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == "compiled into one graph"
