"""Does a published sentence encoder find an entry of the glossary better than counting words does?

Opens all-MiniLM-L6-v2 (`ttutor fetch minilm`), gives each entry of the book's glossary a vector, and asks in other
words than an entry's name. For each question the place of the entry that was meant is stored, by four orders: by the
cosine to whole entries, by the cosine to their first sentences, by how many words are shared, and by the shared words
weighed by how rare they are (idf). Entries that are as near take the middle of their places. Half of the questions
stand on the page; the other thirty were written afterwards, to refute what it says of the first.
"""

import math
import re
from collections import Counter
from pathlib import Path

import torch

from experiments import _record
from ttutor.pretrained import load, sentence_vectors

GLOSSARY = Path(__file__).resolve().parents[1] / "book" / "glossary.md"
ON_THE_PAGE = {
    "How does it know in which order the words stand?": "position",
    "The network learned the examples by heart": "overfitting",
    "A head that repeats what came before": "induction head",
    "Switching a part off to see what it was good for": "ablation",
    "Make the learning steps small at first": "warm-up",
    "Cutting a text into pieces": "tokeniser",
    "The model may not see later words": "causal mask",
    "Turning off random units while training": "dropout",
    "Keep what was computed for earlier words": "cache",
    "How good is a translation, as a number?": "BLEU",
    "Translate with several candidates at once": "beam search",
}
FURTHER = {
    "Which token is allowed to look at which?": "mask",
    "The part that writes the answer": "decoder",
    "How bold the drawing of words is": "temperature",
    "Several lookups side by side": "multi-head attention",
    "Add what went into a part to what comes out": "residual connection",
    "How surprised the model is by a text": "perplexity",
    "Give up when nothing gets better any more": "patience",
    "Teach a finished model a new task": "fine-tuning",
    "A few small matrices instead of training all weights": "LoRA",
    "A small model guesses and a big one verifies": "speculative decoding",
    "Turn vectors by an angle for each place": "rotary positions",
    "The longest text that fits": "max_len",
    "A picture cut into squares": "patch",
    "What training makes small": "loss",
    "The same matrix for reading and for writing words": "tied embeddings",
    "Always take the likeliest word": "greedy search",
    "Draw from the best forty words only": "top-k",
    "Do not favour short answers": "length penalty",
    "Show the right word before it is asked for the next one": "teacher forcing",
    "Guess hidden words in the middle of a sentence": "masked language modelling",
    "Only some of the networks work on each word": "mixture of experts",
    "A number from zero to one that lets through or holds back": "gate",
    "A list of numbers for a word": "embedding",
    "Several questions share one set of keys": "grouped-query attention",
    "Attention that never writes down the whole table": "FlashAttention",
    "Read a layer as if it were the last": "logit lens",
    "A copy of the model saved on the way": "checkpoint",
    "Steps that are too long are cut": "clipping",
    "Many sentences at the same time": "batch",
    "What is handed over once it is found": "value",
}


def entries_of(page: str) -> dict[str, str]:
    """The entries of the glossary by their first name, as plain text."""
    found = {}
    for part in re.findall(r"```\{glossary\}\n(.*?)```", page, re.DOTALL):
        for entry in part.strip().split("\n\n"):
            lines = entry.split("\n")
            said = " ".join(line.strip() for line in lines if line.startswith(" "))
            found[lines[0].strip("`")] = re.sub(r" \(\{doc\}.*?\)$|\{\w+\}`([^`<]*?)(?: <[^`]*>)?`", r"\1", said)
    return found


def place(scores: list[float], wanted: int) -> float:
    """The place of one entry, the best first; those that are as near share the middle of their places."""
    better = sum(score > scores[wanted] for score in scores)
    return better + (1 + sum(score == scores[wanted] for score in scores)) / 2


def words_of(text: str) -> set[str]:
    """The words of a text, without case."""
    return set(re.findall(r"\w+", text.lower()))


def main() -> None:
    """Ask all questions in all orders."""
    started, encoder = _record.start(), load("minilm")
    entries, questions = entries_of(GLOSSARY.read_text(encoding="utf-8")), {**ON_THE_PAGE, **FURTHER}
    whole = [f"{name}: {said}" for name, said in entries.items()]
    first = [f"{name}: {said.split('. ')[0]}" for name, said in entries.items()]
    asked = sentence_vectors(encoder, list(questions))
    by_words = [words_of(text) for text in whole]
    in_entries = Counter(word for words in by_words for word in words)

    def rarity(words: set[str]) -> float:
        return sum(math.log(len(entries) / in_entries[word]) for word in sorted(words))

    shared = [[words_of(question) & words for words in by_words] for question in questions]
    orders = {
        "meaning": asked @ sentence_vectors(encoder, whole).T,
        "meaning of first sentences": asked @ sentence_vectors(encoder, first).T,
        "shared words": torch.tensor([[float(len(words)) for words in row] for row in shared]),
        "shared rare words": torch.tensor([[rarity(words) for words in row] for row in shared]),
    }
    names = list(entries)
    places = {
        question: {order: place(table[number].tolist(), names.index(term)) for order, table in orders.items()}
        for number, (question, term) in enumerate(questions.items())
    }
    summary = {
        part: {
            order: {
                "first": sum(places[question][order] == 1 for question in some),
                "among five": sum(places[question][order] <= 5 for question in some),
                "median place": sorted(places[question][order] for question in some)[len(some) // 2],
            }
            for order in orders
        }
        for part, some in {"on the page": ON_THE_PAGE, "further": FURTHER}.items()
    }
    results = {"entries": len(entries), "questions": questions, "places": places, "summary": summary}
    _record.write("pretrained_search", results, seeds=[0], started=started)


if __name__ == "__main__":
    main()
