"""What the heads of our translator's encoder look at, and what they write to the stream, on two sentences.

Trains the preset ``embedded`` with seed 0 and runs its encoder on each sentence. Stored are the attention weights of
all layers and heads, and of each query the inner products of the vectors that the heads and the bias add to the layer's
output: lengths and angles, all that `HeadsExplorer` draws. The result says how long it took.
"""

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.trainer import Trainer
from ttutor.translation.translator import Translator
from ttutor.widgets import HeadsExplorer
from ttutor.widgets.from_model import recorded_attention

SEED = 0
SENTENCES = ["The black cats see a small dog.", "The young strong foxes swim behind the city."]


def read(translator: Translator, sentence: str) -> dict:
    """Tokens, weights and products of the encoder on one sentence, rounded as the explorer rounds them."""
    seen = recorded_attention(translator, sentence, part="encoder")
    explorer = HeadsExplorer(seen.tokens, seen.weights, writes=seen.writes, rest=seen.rest)
    answer = translator(sentence, attention=False).text
    return {
        "sentence": sentence,
        "translation": answer,
        "tokens": explorer.tokens,
        "weights": explorer.weights,
        "products": explorer.products,
    }


def main() -> None:
    started = _record.start()
    trainer = Trainer(embedded_corpus(), TrainingRecipe.preset("embedded").replace(seed=SEED), precision="fp32")
    trainer.run()
    translator = Translator.of(trainer)
    config = translator.model.config
    settings = {"recipe": "embedded", **{name: getattr(config, name) for name in ("d_model", "n_heads", "n_layers")}}
    sentences = [read(translator, sentence) for sentence in SENTENCES]
    _record.write(
        "multihead_recording",
        {"settings": settings, "sentences": sentences},
        seeds=[SEED],
        started=started,
        embedded_corpus=True,
    )


if __name__ == "__main__":
    main()
