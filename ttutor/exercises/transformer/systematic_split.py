"""Exercise: a split that holds out whole combinations, not sentences."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ttutor.exercises.draws import drawn, one_of
from ttutor.exercises.exercise import Case, Exercise, Trial


def systematic_split(
    nouns: Int[Tensor, " sentences"], verbs: Int[Tensor, " sentences"], every: int, remainder: int
) -> Bool[Tensor, " sentences"]:
    """True for each sentence that is held out: its numbers of noun and verb add up to `remainder` modulo `every`."""
    return (nouns + verbs) % every == remainder


def reference(nouns, verbs, every, remainder):
    pairs = zip(nouns.tolist(), verbs.tolist(), strict=True)
    return torch.tensor([divmod(noun + verb, every)[1] == remainder for noun, verb in pairs])


def _sentences(random):
    """Nouns, verbs and three adverbs, every combination once, in any order."""
    nouns, verbs = torch.arange(drawn(random, 6, 8)), torch.arange(5)
    nouns, verbs, _ = torch.cartesian_prod(nouns, verbs, torch.arange(3)).T
    order = torch.randperm(len(nouns), generator=random)
    return nouns[order], verbs[order], one_of(random, (3, 4, 5)), one_of(random, (1, 2))


exercise = Exercise(
    id="transformer.systematic_split",
    title="Hold out the pairs",
    statement="""
A random split holds out sentences. The pair of a noun and a verb in a held-out sentence still occurs in training,
beside another adverb, so a model can be right by filling gaps. Hold out whole *pairs* instead.

Nouns and verbs are numbered from 0, and sentence i has the noun `nouns[i]` and the verb `verbs[i]`. Hold out every
sentence whose two numbers add up to `remainder` modulo `every`. Before you run it: with six nouns, five verbs and
`every` = 3, does each noun still occur in training? Does each verb?
""".strip(),
    reference=reference,
    solution=systematic_split,
    explanation="""
Write the pairs as a table with a row for each noun and a column for each verb. What is held out are diagonals of it. A
diagonal crosses every row and every column and covers none of them whole, so each noun and each verb is learned with
other partners, and no held-out pair is ever seen. Whoever is right on such a split can join parts that were each seen
in that slot; whether it has a rule, parts never seen there would show.
""".strip(),
    cases=(Case(name="nouns, verbs and adverbs", inputs=_sentences),),
    hints="""
Draw the table of nouns and verbs, and mark the pairs whose numbers add up to 1, 4 and 7. Which rows and columns are
marked from end to end?

Whether a sentence is held out depends on its pair alone: not on its place in the list, and not on its adverb.

Add the two tensors, take the remainder with `%`, and compare it with `remainder`.
""",
    difficulty=1,
    minutes=10,
    section="07-transformer",
)

exercise.mutations("""
nouns_alone: "nouns + verbs" -> "nouns"
    You hold out whole nouns, with all their verbs. A model never meets them in training, and nothing can be learned
    about a word that never occurs.
verbs_alone: "nouns + verbs" -> "verbs"
    You hold out whole verbs, with all their nouns. A model never meets them in training, and nothing can be learned
    about a word that never occurs.
sentences_held_out: "nouns + verbs" -> "torch.arange(len(nouns))"
    You hold out every third sentence of the list. Its pair of noun and verb occurs in training, beside another adverb.
product: "nouns + verbs" -> "nouns * verbs"
    You multiply the numbers. Noun 0 then has the product 0 with every verb: look at its row in the table.
difference: "nouns + verbs" -> "nouns - verbs"
    Your split holds out whole pairs, and leaves each word in training. But these are other pairs: take the sum of the
    numbers.
other_side: "==" -> "!="
    Training and test are exchanged: you hold out two pairs of three. True means held out.
remainder_ignored: "== remainder" -> "== 0"
    The remainder is always 0 in your split. It is handed over, so that several splits can be compared.
both_remainders: "(nouns + verbs) % every == remainder" -> "(nouns % every == remainder) & (verbs % every == remainder)"
    You ask for the remainder of each number by itself. Most nouns then lose no partner at all.
numbers_returned: "== remainder" -> "== remainder).nonzero()[:, 0]", "return (" -> "return (("
    You return the numbers of the sentences. The exercise asks for a True or False for each of them.
""")


@exercise.must_hold("No pair of a noun and a verb may stand on both sides of the split.")
def pair_on_both_sides(trial: Trial) -> str | None:
    nouns, verbs, _, _ = trial.inputs
    pairs = list(zip(nouns.tolist(), verbs.tolist(), strict=True))
    held, kept = (
        {pair for pair, out in zip(pairs, trial.value.tolist(), strict=True) if out is side} for side in (True, False)
    )
    both = sorted(held & kept)
    return f"Noun {both[0][0]} with verb {both[0][1]} is held out and in training too." if both else None


@exercise.must_hold("Every noun and every verb should occur in training, with some partner.")
def word_never_trained(trial: Trial) -> str | None:
    nouns, verbs, _, _ = trial.inputs
    for name, words in (("noun", nouns), ("verb", verbs)):
        lost = sorted(set(words.tolist()) - set(words[~trial.value].tolist()))
        if lost:
            return f"In training {name} {lost[0]} never occurs."
    return None
