"""Exercise: how many pixels a feature of a convolutional network can see."""

import torch

from ttutor.exercises.draws import drawn
from ttutor.exercises.exercise import Case, Exercise, Trial


def receptive_field(layers: list[tuple[int, int, int]]) -> tuple[int, int]:
    """Pixels that one feature of the last layer sees, and pixels by which its neighbour's window is shifted."""
    field, jump = 1, 1
    for kernel, stride, dilation in layers:
        field += (kernel - 1) * dilation * jump
        jump *= stride
    return field, jump


def reference(layers):
    def places(n_layers, place):
        """The first and the last pixel that a feature depends on, found from its layer backwards."""
        low = high = place
        for kernel, stride, dilation in reversed(layers[:n_layers]):
            low, high = low * stride, high * stride + (kernel - 1) * dilation
        return low, high

    low, high = places(len(layers), 0)
    return high - low + 1, places(len(layers), 1)[0] - low


def _with_strides(random):
    n_layers = drawn(random, 5, 7)
    kernels = torch.tensor([2, 3, 5, 7, 4, 6, 8])[torch.randperm(n_layers, generator=random)].tolist()
    strides = torch.tensor([2, 3, 4, 1, 2, 1])[torch.randperm(n_layers - 1, generator=random)].tolist()
    return ([(kernel, stride, 1) for kernel, stride in zip(kernels, [5, *strides], strict=True)],)


def _with_holes(random):
    n_layers = drawn(random, 3, 5)
    kernels = torch.tensor([3, 5, 2, 4, 7])[torch.randperm(n_layers, generator=random)].tolist()
    dilations = torch.tensor([2, 4, 3, 5, 6])[torch.randperm(n_layers, generator=random)].tolist()
    return ([(kernel, 1, dilation) for kernel, dilation in zip(kernels, dilations, strict=True)],)


exercise = Exercise(
    id="vit.receptive_field",
    title="What can it see?",
    statement="""
Each layer is a triple: kernel, stride, dilation (the distance between two neighbouring pixels that the kernel reads; 1
is an ordinary convolution, and a pooling counts like one). Return two whole numbers: how many pixels of the image, in
one direction, a feature behind the last layer sees; and by how many pixels the windows of two neighbouring features are
shifted against each other there. Forget the image's border.

Then put in VGG16 and a network of your own choice. How many convolutions of 3 would VGG16 need to see 196 pixels if it
had no pooling?
""".strip(),
    reference=reference,
    solution=receptive_field,
    explanation="""
Without pooling each layer adds two pixels, so $1 + 2L = 195$ takes 97 layers and 196 is first passed with 98. The
thirteen of VGG16 reach it because each pooling doubles what every later layer adds: it is the strides, not the kernels,
that make a field large.
""".strip(),
    cases=(
        Case(name="strides and no holes", inputs=_with_strides, points=2),
        Case(name="holes and no strides", inputs=_with_holes),
    ),
    hints="""
A feature of layer 2 sees a few features of layer 1. How far apart do the windows of those stand?

Keep two numbers while you go through the layers from the image on: the field and the jump so far.

A layer adds kernel minus one steps of `dilation` jumps; only then does its stride enlarge the jump.
""",
    difficulty=1,
    minutes=15,
    section="10-vit",
)

exercise.mutations("""
dilation_moves_the_window: "= stride" -> "= stride * dilation"
    Your windows move apart by the dilation. Holes widen a window, and the next one still starts a stride further.
stride_ignored: " * jump" -> ""
    Your field takes no notice of strides. After a layer that skips pixels, one step further is how many pixels of the
    image?
stride_too_early: "* jump" -> "* jump * stride"
    Your field is too large by strides that come too early: a layer's stride concerns the layers after it, not the layer
    itself.
whole_kernels_added: "(kernel - 1)" -> "kernel"
    Each layer adds too much: of a kernel of three, one pixel was seen already. Which part is new?
kernels_multiplied: "field += (kernel - 1) * dilation * jump" -> "field *= (kernel - 1) * dilation + 1"
    You multiply windows. Neighbouring windows overlap, so the field grows by sums.
begun_at_zero: "jump = 1, 1" -> "jump = 0, 1"
    One pixel is missing: what does a feature see before there is any layer?
dilation_ignored: " * dilation" -> ""
    Right without holes. A dilated kernel reads as many numbers, spread over more pixels.
dilation_as_a_gap: "* dilation" -> "* (dilation + 1)"
    You count pixels left out between two taps. Dilation is the distance of the taps: 1 is the ordinary convolution.
last_stride_alone: "return field, jump" -> "return field, stride"
    The field is right, the distance of the windows is the last layer's own. Measure it in pixels of the image.
strides_added: "return field, jump" -> "return field, sum(stride for _, stride, _ in layers)"
    The field is right. Strides on top of one another do not add: two layers of stride 2 keep one pixel in how many?
""")


@exercise.must_hold("One layer sees its kernel and moves by its stride.")
def one_layer(trial: Trial) -> str | None:
    field, jump = trial.run([(7, 3, 1)])
    return None if (field, jump) == (7, 3) else f"For one kernel of 7 with stride 3 you give {field} and {jump}."


@exercise.must_hold("A 1 x 1 convolution of stride 1 mixes channels, and sees not one pixel more.")
def single_pixels(trial: Trial) -> str | None:
    (layers,) = trial.inputs
    longer = trial.run([*layers, (1, 1, 1)])
    return None if tuple(longer) == tuple(trial.value) else "A layer of 1 x 1 at the end changes your numbers."
