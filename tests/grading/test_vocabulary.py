"""`ttutor.grading.vocabulary`: ordinary right answers are not listed, and whatever leads elsewhere is."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

import pytest

from tests.exercises.bank import RIGHT
from tests.grading.bench import handed_in, homework
from tests.grading.red_team import ATTEMPTS, HEAD, UNUSUAL
from tests.grading.right_answers import ORDINARY
from tests.grading.right_answers import UNUSUAL as MORE_UNUSUAL
from tests.grading.second_red_team import ATTEMPTS as MORE_ATTEMPTS
from tests.grading.second_red_team import RIGHT as TEN_RIGHT
from tests.grading.third_red_team import ATTEMPTS as LATEST_ATTEMPTS
from tests.grading.third_red_team import RIGHT as LATEST_RIGHT
from ttutor.exercises import exercises, find
from ttutor.exercises.judge import judge
from ttutor.exercises.mutation import source_of
from ttutor.exercises.source import imports, solution_source
from ttutor.grading.answer import Piece
from ttutor.grading.grader import Grader
from ttutor.grading.marks import State
from ttutor.grading.vocabulary import strange_words, vocabulary_of
from ttutor.grading.worker.reader import read_file

SOFTMAX = "attention.softmax"
TEN = tuple(dict.fromkeys(exercise_id for exercise_id, _ in MORE_ATTEMPTS.values()))
STYLES = [*ORDINARY, *MORE_UNUSUAL, *LATEST_RIGHT, *((one, text) for text in TEN_RIGHT for one in TEN)]
BODY = "powers = (scores - scores.amax(dim, keepdim=True)).exp()\n    return powers / powers.sum(dim, keepdim=True)\n"


def listed(exercise_id: str, text: str, name: str) -> tuple[str, ...]:
    """What is listed of an answer in a file; only what it needs is read."""
    found = read_file("hw1.py", text.encode(), [name])
    pieces = [Piece(**found["pieces"][place]) for place in found["answers"][name]["needs"]]
    return strange_words(find(exercise_id), pieces)


def softmax(body: str = BODY, head: str = "") -> tuple[str, ...]:
    return listed(SOFTMAX, f"import torch\n{head}\ndef my_softmax(scores, dim=-1):\n    {body}", "my_softmax")


@pytest.mark.parametrize("exercise", exercises(), ids=lambda one: one.id)
def test_solutions_and_known_right_answers_are_not_listed(exercise):
    texts = [("\n".join([*imports(exercise), "", solution_source(exercise)]), exercise.name)]
    texts += [(inspect.getsource(sys.modules[one.__module__]), one.__name__) for one in RIGHT[exercise.id]]
    assert [found for text, name in texts if (found := listed(exercise.id, text, name))] == []


def test_known_wrong_answers_are_hardly_ever_listed():
    count, found = 0, []
    for exercise in exercises():
        head = "\n".join([*imports(exercise), "", ""])
        for answer in (answer for mistake in exercise.mistakes for answer in mistake.answers):
            found += [answer.__name__] if listed(exercise.id, head + source_of(answer), answer.__name__) else []
            count += 1
    assert len(found) <= count / 50, found


STRANGE = {
    "return torch._safe_softmax(scores, dim)": "torch._safe_softmax",
    "return torch.sparse.softmax(scores.to_sparse(), dim).to_dense()": "torch.sparse",
    "return getattr(torch, 'soft' + 'max')(scores, dim)": "getattr",
    "return torch.ops.aten._softmax(scores, dim, False)": "torch.ops",
    "import sys\n    return sys.modules['x'](scores)": "import sys",
    "return scores.__class__.softmax(scores, dim)": "scores.__class__",
    "match torch:\n        case object(softmax=f): return f(scores, dim)": "softmax",
    "return [t for t in [torch]][0].exp(scores)": "torch, a module, as a value",
    "return '{0.shape}'.format(scores)": "{0.shape}",
    "text = '{0.shape}'[:]\n    return text.format(scores)": "text.format",
    "getattr = max\n    return getattr(scores)": "getattr",
    "scores.exp = 3": "scores.exp = ...",
    "torch.exp = 3": "torch.exp = ...",
    "return (i for i in scores).gi_frame": "gi_frame",
    "return type('T', (), {})": "type, as a value",
    "make = type\n    return make('T', (), {})": "type, as a value",
    "from functools import wraps\n    return wraps(scores, assigned=('data',), updated=())": "assigned=...",
    "return scores + '_' * 2 + 'call'": "'_' * 2",
    "return scores.log_softmax(dim).grad_fn(scores)": "grad_fn",
    "from torch.nn import functional as F\n    return F.torch.exp(scores)": "F.torch, the module torch by another way",
    "from jaxtyping import Float\n    return Float[torch.Tensor, scores]": "axes that are no text: scores",
    "from jaxtyping import Float\n    return Float[torch.Tensor, '(1).real']": "(1).real",
    "return '{a-b.shape}'.format(**{'a-b': scores})": "{a-b.shape}",
    "return torch.jit.script(scores)": "torch.jit",
    "return eval('scores')": "eval",
    "return scores.softmax(dim)": "scores.softmax",
    "return scores['a __b__']": "a __b__",
}


@pytest.mark.parametrize("body", STRANGE)
def test_what_leads_elsewhere_is_listed_with_its_line(body):
    found = softmax(body)
    assert any(f"`{STRANGE[body]}`" in one and one.startswith("hw1.py, line ") for one in found), found


# PyTorch warns once a process when `float` takes a loss that has a graph; a student's answer may do so.
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad:UserWarning")
@pytest.mark.parametrize(("exercise_id", "text"), STYLES, ids=lambda one: one if "\n" not in one else "")
def test_right_answers_in_many_styles_pass_and_are_not_listed(exercise_id, text, monkeypatch):
    exercise, module = find(exercise_id), ModuleType("answers")
    monkeypatch.setitem(sys.modules, "answers", module)  # dataclasses look there
    names = vars(module)
    exec(compile(text, "<answer>", "exec"), names)
    name = exercise.name if exercise.name in names else f"my_{exercise.name}"
    assert listed(exercise_id, text, name) == ()
    result = judge(exercise, names[name], seed=3, hidden=True)
    assert result.passed, result


VALUES_TELL = (
    "steps by hand, the count by a method",
    "steps by hand, then an idle step",
    "dropout that counts the calls",
    "dropout that looks whether a gradient is asked for",
    "tokens that tell their list twice",
    "a frozen layer behind another",
)


@pytest.mark.parametrize("attempt", LATEST_ATTEMPTS)
def test_what_is_set_on_anything_else_is_listed_or_values_tell(attempt):
    exercise_id, text = LATEST_ATTEMPTS[attempt]
    exercise, names = find(exercise_id), {}
    name = exercise.name if f"class {exercise.name}" in text else f"my_{exercise.name}"
    assert (listed(exercise_id, HEAD + text, name) == ()) == (attempt in VALUES_TELL)
    if attempt in VALUES_TELL:
        exec(compile(HEAD + text, "<attempt>", "exec"), names)
        assert judge(exercise, names[name], hidden=True).points == 0


HEADS = [
    "class A(torch.Tensor): pass",
    "class A(metaclass=type): pass",
    "class A(torch.nn.Module):\n    def parameters(self): return []",
    "class A:\n    def __torch_function__(self): pass",
    "class A:\n    def __init__(self): self.gi_frame = 1\ndef help(x): return (i for i in x).gi_frame",
    "class A:\n    def __init__(self): self.gi_frame = 1\ndef help(self): return self.gi_frame",
    "from torch import _C as A",
    "import scipy.special as A",
    "from .x import A",
    "from torch import *\nA = 1",
    "import torch.autograd.forward_ad as A",
]


@pytest.mark.parametrize("head", HEADS)
def test_what_an_answer_needs_is_read_too(head):
    name = "help" if "help" in head else "A"
    assert softmax(f"{name}; {BODY}", head) != ()
    assert "*" in head or softmax(BODY, head) == (), "what it does not need is neither run nor listed"


def test_a_helper_may_have_any_name_and_attributes_of_its_own():
    head = (
        "class Layer(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.heads = 2\n"
    )
    head += "        self.register_buffer('waves', torch.ones(2))\n"
    head += "    def softmin(self): return self.heads * self.waves\ndef input(id): return Layer().heads * id"
    assert softmax(f"input(1); {BODY}", head) == ()


STEPS = "@dataclass\nclass Adam:\n    steps: int = 0\n"
FOREIGN = {
    "is anything at another place": f"{STEPS}def help(o):\n    a = Adam()\n    a = o\n    a.steps = 2",
    "is what came in": f"{STEPS}def help(a):\n    a.steps = 2",
    "is in a loop": f"{STEPS}def help(o):\n    for a in [o]: a.steps = 2\n    a = Adam()",
    "is what another function makes": f"{STEPS}def help(o):\n    Adam = lambda: o\n    a = Adam()\n    a.steps = 2",
    "is counted wrongly": f"{STEPS}def help(o):\n    *b, a = 1, Adam(), o\n    a.steps = 2",
    "is what a decorator makes": STEPS.replace("@dataclass", "@partial(max, default=0)")
    + "def help(o):\n    a = Adam()\n    a.steps = 2",
}


@pytest.mark.parametrize("case", FOREIGN)
def test_an_object_may_be_given_attributes_where_it_is_ones_own_alone(case):
    head = "from dataclasses import dataclass\nfrom functools import partial\n"
    own = (
        f"{STEPS}class Box: pass\ndef help(x):\n    a, b = Adam(), Box()\n    a.steps = b.count = 2\n    return b.count"
    )
    assert softmax(f"help(1); {BODY}", head + own) == ()
    assert any("`a.steps" in one for one in softmax(f"help(1); {BODY}", head + FOREIGN[case]))


def test_words_of_the_statement_are_words_of_the_exercise_and_forbidden_ones_are_not():
    words = vocabulary_of(find("positions.position_table"))
    assert words.has("register_buffer")
    assert not vocabulary_of(find(SOFTMAX)).has("softmax")
    assert vocabulary_of(find("attention.causal_attention")).has("softmax")


def test_a_listed_answer_keeps_its_points_and_waits_where_that_is_asked_for(forks):
    text = f"import torch\nimport gc\ndef my_softmax(scores, dim=-1):\n    gc.collect()\n    {BODY}"
    asked = homework(SOFTMAX)
    (mark,) = Grader(asked, forks).grade(handed_in(text)).exercises
    assert (mark.state, mark.earned) == (State.OK, 10.0)
    assert mark.warnings == ("homework.py, line 2: `import gc`", "homework.py, line 4: `gc.collect`")
    (mark,) = Grader(homework(SOFTMAX, strict=True), forks).grade(handed_in(text)).exercises
    assert (mark.state, mark.earned) == (State.NOT_GRADABLE, 0.0)
    assert mark.warnings[-1] == "the grader by itself would give 10 points"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_attack_gains_a_point_that_is_not_listed(forks):
    gained = []
    attempts = [*ATTEMPTS, *MORE_ATTEMPTS.values(), *LATEST_ATTEMPTS.values()]
    for exercise_id, text in attempts:
        (mark,) = Grader(homework(exercise_id), forks).grade(handed_in(HEAD + text)).exercises
        gained += [text] if mark.earned and not mark.warnings else []
    assert gained == []
    assert len(attempts) > 94


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_unusual_right_answers_earn_their_points_and_are_not_listed(forks):
    for exercise_id, text in [*UNUSUAL, *STYLES]:
        (mark,) = Grader(homework(exercise_id), forks).grade(handed_in(HEAD + text)).exercises
        assert (mark.state, mark.warnings) == (State.OK, ()), text
