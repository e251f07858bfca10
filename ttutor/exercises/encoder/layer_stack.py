"""Exercise: a stack of layers that the optimiser can see."""

import copy
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise
from ttutor.exercises.facts import fact, numbers_in, trainable_numbers_in


class LayerStack(nn.Module):
    """Layers one after the other, each with weights of its own."""

    def __init__(self, make_layer: Callable[[], nn.Module], n_layers: int) -> None:
        super().__init__()
        ...

    def forward(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Send the hidden vectors through all layers, from the first to the last."""
        ...


class Solution(nn.Module):
    """Layers one after the other, each with weights of its own."""

    def __init__(self, make_layer: Callable[[], nn.Module], n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))

    def forward(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """Send the hidden vectors through all layers, from the first to the last."""
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


class Reference(nn.Sequential):
    """The same by torch's own container."""

    def __init__(self, make_layer, n_layers):
        super().__init__(*[make_layer() for _ in range(n_layers)])


class SignedLinear(nn.Linear):
    """A linear layer whose result has another sign in evaluation, so that the result tells in which mode it is."""

    def forward(self, hidden):
        """Multiply, and turn the sign in evaluation."""
        result = super().forward(hidden)
        return result if self.training else -result


def observe(answer, hidden, n_layers):
    """Build a stack of linear layers, run it, train it, move it, and say what can be seen of it."""
    made = []

    def make_layer():
        made.append(SignedLinear(hidden.shape[-1], hidden.shape[-1]))
        return made[-1]

    stack = answer(make_layer, n_layers)
    n_made = len(made)
    result = stack(hidden)
    if isinstance(result, Tensor) and result.requires_grad:
        result.sum().backward()
    reached = sum(layer.weight.grad is not None for layer in made)
    starts = {
        tuple(weight.flatten().tolist()) for name, weight in stack.state_dict().items() if name.endswith("weight")
    }
    if found := list(stack.parameters()):
        torch.optim.SGD(found, lr=0.05).step()
    trained = stack(hidden).detach()
    evaluated = stack.eval()(hidden).detach()
    in_evaluation = not any(layer.training for layer in made)
    stack.double()
    doubled = all(layer.weight.dtype == torch.float64 for layer in made)
    return {
        "the result after a step of training": trained,
        "the result in evaluation": evaluated,
        "the result in float64": stack(hidden.double()).detach() if doubled else None,
        "the result": result,
        "calls of make_layer": n_made,
        "numbers that an optimiser is handed": numbers_in(stack),
        "numbers that it may change": trainable_numbers_in(stack),
        "matrices that start differently": len(starts),
        "layers that get a gradient": reached,
        "eval() reaches every layer": in_evaluation,
        "double() reaches every layer": doubled,
    }


def _hidden(generator):
    shape = drawn(generator, 2, 3), drawn(generator, 5, 6), drawn(generator, 7, 8)
    return torch.randn(*shape, generator=generator), drawn(generator, 3, 5)


def _numbers(hidden, n_layers):
    d_model = hidden.shape[-1]
    return n_layers * d_model * (d_model + 1)


exercise = Exercise(
    id="encoder.layer_stack",
    title="A stack that the optimiser can see",
    statement="""
An encoder is a stack of `n_layers` layers: the output of each is the input of the next. Write the stack. It is handed a
function, `make_layer()`, that makes one layer with weights of its own; call it once for every layer, when the stack is
built. An optimiser that is handed `stack.parameters()` must find the weights of all layers, and `eval()` and
`double()` must reach them.
""".strip(),
    stub=LayerStack,
    reference=Reference,
    solution=Solution,
    cases=(Case(name="a few linear layers", inputs=_hidden, points=3),),
    explanation="""
A plain list hides its modules: `parameters()`, `eval()` and `double()` go through attributes that are modules, and a
list is none. `nn.ModuleList` is. And the layers have to be made one by one: `[make_layer()] * n_layers` would hold one
layer `n_layers` times, with one set of weights.
""".strip(),
    hints="""
`stack.parameters()` walks through the modules that stand in the attributes of your module. Does it look into a Python
list?

torch has a list whose entries are found: `nn.ModuleList`. How do you get `n_layers` layers into it that are different
objects?

In `__init__`, a ModuleList of `make_layer()` for each number in `range(n_layers)`; in `forward`, a loop over it, in
which the hidden vectors are replaced by what the layer makes of them.
""",
    properties=[
        fact(
            "numbers that an optimiser is handed",
            _numbers,
            "An optimiser should find each number of each layer, and no others: are all layers registered?",
            id="optimiser_sees_all",
        ),
        fact(
            "calls of make_layer",
            lambda hidden, n_layers: n_layers,
            "Each layer should be made by a call of `make_layer` of its own, when the stack is built.",
            id="makes_each",
        ),
        fact(
            "layers that get a gradient",
            lambda hidden, n_layers: n_layers,
            "A loss on the result should send a gradient to every layer: which ones does your `forward` use?",
            id="gradient_reaches_all",
        ),
    ],
    observe=observe,
    forbids=("Encoder", "TransformerEncoder"),
    difficulty=1,
    minutes=10,
    section="05-encoder",
)

exercise.mutations(r"""
python_list: "nn.ModuleList(make_layer() for _ in range(n_layers))" -> "[make_layer() for _ in range(n_layers)]"
    The result is right, but an optimiser finds no parameters: a module does not look into a plain Python list. Which
    container does it know?
one_layer: "nn.ModuleList(make_layer() for _ in range(n_layers))" -> "nn.ModuleList([make_layer()] * n_layers)"
    All layers of yours are one and the same object and share their weights. Multiplying a list by a number copies
    references, not layers.
side_by_side: "hidden = layer(hidden)" -> "result = layer(hidden)", "return hidden" -> "return result"
    Every layer of yours reads the input of the stack. Each should read what the one before it made: what does your loop
    hand on?
one_too_few: "range(n_layers)" -> "range(n_layers - 1)"
    One layer is missing: count the passes of your loop.
first_only: "hidden = layer(hidden)" -> "return layer(hidden)"
    Only the first layer works: your `return` stands inside the loop.
made_in_forward: "self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))" ->
  "self.make_layer, self.n_layers = make_layer, n_layers", "layer in self.layers" -> "_ in range(self.n_layers)",
  "layer(hidden)\n" -> "self.make_layer()(hidden)\n"
    You make the layers in `forward`: every call draws new weights, and none is ever trained. Make them once, when the
    stack is built.
detached: "layer(hidden)" -> "layer(hidden.detach())"
    The result is right, but only the last layer gets a gradient: what you hand from layer to layer has left the graph.
""")


@exercise.mistake(
    "The layers are different objects but begin with equal weights, as copies of the first. Each should draw its own: "
    "ask `make_layer` again.",
    id="copies",
)
class Copies(Solution):
    def __init__(self, make_layer, n_layers):
        nn.Module.__init__(self)
        layer = make_layer()
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(n_layers))
