"""Two published models read our sentences: which words a pronoun needs, and how *bank* becomes two things.

SmolLM2-135M-Instruct (`ttutor fetch smollm2`) continues 72 openings such as *The aunt lost the key, so*: six openings
by six nouns of *she* and six of *he*. Counted is how often the right pronoun is more probable than the other one. The
noun is then hidden from later words, in all heads or in some; or its values are exchanged for those of its partner
(*aunt* for *uncle*) while all weights stay what they were. Heads are chosen on the first three openings, and judged on
the other three.

MiniLM (`ttutor fetch minilm`) reads *bank* in 15 sentences of each sense, and *bat* and *spring* in 8 of each. Each
vector of the word is assigned to the sense whose other vectors it is nearest to (nearest centroid, by the cosine; the
vector itself is left out), after each layer, and once more with the word looking at nothing but itself.
"""

import torch
from torch.nn import functional

from experiments import _record
from ttutor.inside import capture, patch
from ttutor.pretrained import Pretrained, load

PAIRS = {"queen": "king", "aunt": "uncle", "girl": "boy", "sister": "brother", "mother": "father", "woman": "man"}
NOUNS = [*PAIRS, *PAIRS.values()]
NAMES = ["Mary", "Anna", "Sarah", "Emma", "Lucy", "Julia", "John", "Peter", "David", "Tom", "Paul", "Mark"]
OPENINGS = [
    "The {} lost the key, so",
    "The {} opened the window because",
    "The {} was tired after the long walk, and then",
    "The {} went home early, because",
    "The {} put the book on the table before",
    "The {} did not answer the letter, although",
]
NOUN = 1
"""The noun is the second token of each opening."""

SENSES = {
    "bank": (
        [
            "We sat on the bank and watched the water go by.",
            "The boat drifted slowly towards the left bank.",
            "Willows lean over the bank where the children fish.",
            "An otter climbed up the muddy bank and shook itself.",
            "After the storm the stream broke through its bank.",
            "Reeds grow thickly along this bank of the canal.",
            "He pulled the canoe onto the bank before dark.",
            "Grass on the bank was wet with spray.",
            "The heron stood still near the far bank.",
            "They pitched their tent on a bank above the ford.",
            "A steep bank hides the creek from the road.",
            "The ferry left one bank at noon and reached the other an hour later.",
            "Swallows dig their nests into the sandy bank.",
            "She threw a line from the bank and caught a trout.",
            "On the opposite bank two cows came down to drink.",
        ],
        [
            "She asked the bank for a loan to buy the flat.",
            "The bank charges a fee for each transfer.",
            "He lost his card and telephoned his bank at once.",
            "My salary goes to the bank on the first of the month.",
            "A clerk at the bank counted the notes twice.",
            "The bank raised its interest rates last week.",
            "They opened an account at a small bank in town.",
            "Thieves dug a tunnel into the vault of the bank.",
            "Her cheque was returned by the bank unpaid.",
            "The bank went bankrupt and its savers were angry.",
            "You can pay the bill at any bank.",
            "In winter the bank lent the farmer enough for new seed.",
            "The minister used to be director of a bank.",
            "An old bank refused to change the coins.",
            "Investors fear that the bank hides its losses.",
        ],
    ),
    "bat": (
        [
            "A bat flew out of the cave at dusk.",
            "The bat hung upside down from a beam.",
            "We heard a bat squeak above the barn.",
            "At night the bat hunts moths by its own echo.",
            "The cat brought a small brown bat into the kitchen.",
            "A fruit bat has larger eyes than an owl.",
            "Rain kept the bat in its roost all evening.",
            "The biologist fitted the bat with a tiny ring.",
        ],
        [
            "He swung the bat and missed the ball.",
            "The boy got a wooden bat for his birthday.",
            "She rubbed oil into her cricket bat.",
            "With the bat on his shoulder he walked to the plate.",
            "The ball flew off the edge of the bat.",
            "Our captain broke his bat in the second innings.",
            "A heavier bat does not always hit farther.",
            "He threw down the bat and ran to first base.",
        ],
    ),
    "spring": (
        [
            "In spring the almond trees are white with flowers.",
            "The lambs are born early in spring.",
            "After a long winter spring came all at once.",
            "We plant peas every spring.",
            "The exam takes place in spring and again in autumn.",
            "This spring was colder than the last.",
            "Birds return from the south in spring.",
            "She was born in the spring of a leap year.",
        ],
        [
            "The spring in the mattress had snapped.",
            "He wound the spring of the old clock.",
            "A small spring pushes the bolt back.",
            "The spring stretches in proportion to the load.",
            "Replace the rusty spring under the seat.",
            "Each wheel has a spring and a damper.",
            "The toy jumps because a spring is released.",
            "Steel wire was coiled into a spring.",
        ],
    ),
}


# ------------------------------------------------------------------------------------------- a pronoun and its noun


class Openings:
    """One opening with all nouns, read once: what later runs are compared with and take values from."""

    def __init__(self, chat: Pretrained, opening: str, nouns: list[str]) -> None:
        self.model = chat.model
        self.ids = torch.cat([chat.ids(opening.format(noun)) for noun in nouns])
        self.tokens = chat.tokens(opening.format(nouns[0]))
        self.partners = torch.arange(len(nouns)).roll(len(nouns) // 2)
        she, he = (chat.tokenizer.encode(word).ids[0] for word in (" she", " he"))
        self.pronouns = torch.tensor([she, he])
        self.is_she = torch.arange(len(nouns)) < len(nouns) // 2
        parts = [capture(self.model, f"layers.*.self_attention.{part}") for part in ("weights", "v")]
        with parts[0] as weights, parts[1] as values:
            logits = self.model(self.ids)
        self.weights, self.values = weights.stack(), values.stack()
        self.gap, self.probability = self.gaps(logits), logits[:, -1].softmax(dim=-1)[:, self.pronouns]

    def gaps(self, logits: torch.Tensor) -> torch.Tensor:
        """The logit of the right pronoun minus that of the other."""
        she, he = logits[:, -1, self.pronouns].unbind(dim=-1)
        return torch.where(self.is_she, she - he, he - she)

    def hidden(self, place: int, queries: slice, heads: dict[int, list[int]] | None = None) -> torch.Tensor:
        """The gaps with one token hidden from these queries: in all heads, or in those of each layer."""
        n_layers, _, n_heads = self.weights.shape[:3]
        chosen = heads if heads is not None else {layer: [*range(n_heads)] for layer in range(n_layers)}

        def hide(numbers: list[int]):
            def edit(weights: torch.Tensor) -> torch.Tensor:
                edited = weights.clone()
                for head in numbers:
                    edited[:, head, queries, place] = 0.0
                return edited / edited.sum(dim=-1, keepdim=True)

            return edit

        edits = {f"layers.{layer}.self_attention.weights": hide(numbers) for layer, numbers in chosen.items()}
        with patch(self.model, edits):
            return self.gaps(self.model(self.ids))

    def exchanged(self, *, of_values: bool, of_weights: bool) -> torch.Tensor:
        """The gaps with the partner's values at the noun, or its weights at all words, or both.

        Weights are held as they were, or as they were for the partner; the other words' values follow what they read.
        """

        def hand_over(partners: torch.Tensor):
            return lambda values: torch.cat([values[:, :, :NOUN], partners, values[:, :, NOUN + 1 :]], dim=2)

        edits: dict = {}
        for layer, (weights, values) in enumerate(zip(self.weights, self.values, strict=True)):
            edits[f"layers.{layer}.self_attention.weights"] = weights[self.partners] if of_weights else weights
            if of_values:
                partners = values[self.partners, :, NOUN : NOUN + 1]
                edits[f"layers.{layer}.self_attention.v"] = hand_over(partners)
        with patch(self.model, edits):
            return self.gaps(self.model(self.ids))


def grouped(heads: list[tuple[int, int]]) -> dict[int, list[int]]:
    """Heads by layer."""
    layers: dict[int, list[int]] = {}
    for layer, head in heads:
        layers.setdefault(layer, []).append(head)
    return layers


def summary(gaps: list[torch.Tensor]) -> dict:
    """Share right, mean and extreme gap, and the share right of each opening."""
    together = torch.cat(gaps)
    return {
        "right": int((together > 0).sum()),
        "of": together.numel(),
        "median": round(float(together.median()), 2),
        "lowest": round(float(together.min()), 2),
        "highest": round(float(together.max()), 2),
        "by_opening": [int((gap > 0).sum()) for gap in gaps],
    }


def pronouns(chat: Pretrained) -> dict:
    """What a pronoun needs."""
    read = [Openings(chat, opening, NOUNS) for opening in OPENINGS]
    later, last = slice(NOUN + 1, None), slice(-1, None)
    asked = torch.stack([one.weights[:, :, :, -1, NOUN].mean(dim=1) for one in read])  # opening layer head
    n_heads = asked.shape[-1]
    order = [divmod(place, n_heads) for place in asked[:3].mean(dim=0).flatten().argsort(descending=True).tolist()]
    arms = {
        "as it is": [one.gap for one in read],
        "noun hidden from the last word": [one.hidden(NOUN, last) for one in read],
        "noun hidden from all later words": [one.hidden(NOUN, later) for one in read],
        "noun hidden from all but the last word": [one.hidden(NOUN, slice(NOUN + 1, -1)) for one in read],
        "values exchanged": [one.exchanged(of_values=True, of_weights=False) for one in read],
        "weights exchanged": [one.exchanged(of_values=False, of_weights=True) for one in read],
        "both exchanged": [one.exchanged(of_values=True, of_weights=True) for one in read],
        "another word hidden": [one.hidden(NOUN + 1, slice(NOUN + 2, None)) for one in read],
    }
    held_out = read[3:]
    for count in (1, 10, 30):
        arms[f"noun hidden in the {count} heads that look at it most"] = [
            one.hidden(NOUN, later, grouped(order[:count])) for one in held_out
        ]
    by_chance = torch.randperm(len(order), generator=torch.Generator().manual_seed(0)).tolist()
    chance = [order[place] for place in by_chance if place >= 30][:30]
    arms["noun hidden in 30 others"] = [one.hidden(NOUN, later, grouped(chance)) for one in held_out]
    arms["as it is, held-out openings"] = [one.gap for one in held_out]
    named = [Openings(chat, opening.replace("The", "Then"), NAMES) for opening in OPENINGS]
    arms["names: as it is"] = [one.gap for one in named]
    arms["names: hidden from all later words"] = [one.hidden(NOUN, later) for one in named]
    arms["names: values exchanged"] = [one.exchanged(of_values=True, of_weights=False) for one in named]
    layer, head = order[0]
    shown, aunt = read[0], NOUNS.index("aunt")
    return {
        "openings": OPENINGS,
        "nouns": NOUNS,
        "arms": {name: summary(gaps) for name, gaps in arms.items()},
        "probability of she, he": [[round(x, 3) for x in row] for row in shown.probability[[aunt, aunt + 6]].tolist()],
        "weight on the noun": {
            "mean of all heads": round(float(asked.mean()), 3),
            "first token, mean of all heads": round(
                float(torch.stack([one.weights[:, :, :, -1, 0].mean() for one in read]).mean()), 3
            ),
            "best head": [layer, head, [round(x, 2) for x in asked[:, layer, head].tolist()]],
            "best heads": [[*place, round(float(asked.mean(dim=0)[place]), 2)] for place in order[:10]],
        },
        "map": {
            "text": OPENINGS[0].format("aunt"),
            "tokens": [token if at != NOUN else " aunt" for at, token in enumerate(shown.tokens)],
            "weights": [[round(x, 3) for x in row] for row in shown.weights[layer, aunt, head].tolist()],
            "by_layer": [[round(x, 3) for x in row] for row in shown.weights[:, aunt, :, -1].mean(dim=1).tolist()],
        },
    }


# ------------------------------------------------------------------------------------------- one word, two meanings


def vectors(encoder: Pretrained, word: str, sentences: list[str], *, alone: bool) -> torch.Tensor:
    """The vectors of a word in some sentences, after the embeddings and after each layer: layers sentences d_model."""
    n_layers, found = encoder.model.config.n_layers, []
    (word_id,) = encoder.tokenizer.encode(word, add_special_tokens=False).ids
    for sentence in sentences:
        ids = encoder.ids(sentence)
        (place,) = (ids[0] == word_id).nonzero()[:, 0].tolist()

        def only_itself(weights: torch.Tensor, place: int = place) -> torch.Tensor:
            edited = weights.clone()
            edited[:, :, place] = 0.0
            edited[:, :, place, place] = 1.0
            return edited

        names = [f"encoder.layers.{layer}.self_attention.weights" for layer in range(n_layers)]
        edits = dict.fromkeys(names, only_itself) if alone else {}
        with patch(encoder.model, edits), capture(encoder.model, "encoder.layers.0.input", "encoder.layers.*") as seen:
            encoder.model(ids)
        found.append(seen.stack()[:, 0, place])
    return torch.stack(found, dim=1)


def without(encoder: Pretrained, word: str, sentence: str) -> torch.Tensor:
    """The mean of the other words' rows in the table of embeddings: what counting words alone would know."""
    (word_id,) = encoder.tokenizer.encode(word, add_special_tokens=False).ids
    ids = encoder.ids(sentence)[0]
    return encoder.model.embeddings.token(ids[ids != word_id]).mean(dim=0)


def by_centroid(points: torch.Tensor, is_first: torch.Tensor) -> list[bool]:
    """Whether each point lies nearer to the other points of its own group."""
    points, right = functional.normalize(points, dim=-1), []
    for one in range(len(points)):
        others = torch.arange(len(points)) != one
        first, second = (points[others & group].mean(dim=0) for group in (is_first, ~is_first))
        nearer = torch.cosine_similarity(points[one], first, dim=0) > torch.cosine_similarity(
            points[one], second, dim=0
        )
        right.append(bool(nearer == is_first[one]))
    return right


def by_neighbour(points: torch.Tensor, is_first: torch.Tensor) -> list[bool]:
    """Whether each point's nearest neighbour belongs to its own group."""
    points = functional.normalize(points, dim=-1)
    nearest = (points @ points.T).fill_diagonal_(-2.0).argmax(dim=-1)
    return (is_first[nearest] == is_first).tolist()


def senses(encoder: Pretrained) -> dict:
    """How well the two senses of a word are told apart, layer by layer."""
    found: dict = {}
    for word, (first, second) in SENSES.items():
        sentences, is_first = [*first, *second], torch.arange(len(first) + len(second)) < len(first)
        free = vectors(encoder, word, sentences, alone=False)
        alone = vectors(encoder, word, sentences, alone=True)
        others = torch.stack([without(encoder, word, sentence) for sentence in sentences])
        centred = free[-1] - free[-1].mean(dim=0)
        axes = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
        axes = axes * axes[:, :1].sign()
        found[word] = {
            "of": len(sentences),
            "right": [sum(by_centroid(points, is_first)) for points in free],
            "right, nearest neighbour": [sum(by_neighbour(points, is_first)) for points in free],
            "right, mean of the others": sum(by_centroid(others, is_first)),
            "right, alone": [sum(by_centroid(points, is_first)) for points in alone],
            "wrong at the end": [
                sentence
                for sentence, right in zip(sentences, by_centroid(free[-1], is_first), strict=True)
                if not right
            ],
            "plane": [[round(x, 2) for x in row] for row in (centred @ axes.T).T.tolist()],
        }
    return found


def attacks(results: dict) -> list[str]:
    """What was tried to refute the page's sentences, one line each."""
    senses, arms = results["senses"], results["pronouns"]["arms"]
    bank = senses["bank"]

    def said(name: str) -> str:
        return f"{arms[name]['right']} of {arms[name]['of']}"

    return [
        *(f"Another word, {word}: {senses[word]['right'][-1]} of {senses[word]['of']}." for word in ("bat", "spring")),
        f"Another analysis, the nearest neighbour: {bank['right, nearest neighbour']} of 30 by layer.",
        f"A control, bank sees itself alone: {bank['right, alone']} of 30 by layer.",
        f"Counting words, the mean of the others' rows: {bank['right, mean of the others']} of 30.",
        f"Names for nouns: {said('names: as it is')}.",
        f"Names hidden: {said('names: hidden from all later words')}; exchanged: {said('names: values exchanged')}.",
        f"Weights exchanged, values kept: {said('weights exchanged')}; both, as a control: {said('both exchanged')}.",
        f"Another word hidden from all after it: {said('another word hidden')}.",
        f"Thirty heads by chance, not among the best thirty: {said('noun hidden in 30 others')}.",
        "Heads are chosen on three openings and judged on three others; both halves of the nouns count alike.",
    ]


@torch.inference_mode()
def main() -> None:
    """Open both models, one after the other."""
    started = _record.start()
    results = {"pronouns": pronouns(load("smollm2")), "senses": senses(load("minilm")), "sentences": SENSES}
    results["attacks"] = attacks(results)
    _record.write("attention_pretrained", results, seeds=[0], started=started)


if __name__ == "__main__":
    main()
