"""BERT: an encoder alone, that reads a whole text at once and is trained to fill in what was masked.

Devlin et al. (2019). What is left of the Transformer of 2017 when the decoder is taken away. Against its encoder:
learned positions for the waves, an embedding of the segment, a norm on the sum of the embeddings, GELU for ReLU. `BERT`
gives hidden vectors; what is made of them stands on top: here the two tasks of pre-training, in `ttutor.variants.heads`
the classifiers of texts and of tokens.
"""

from ttutor.variants.bert.config import BERTConfig
from ttutor.variants.bert.model import BERT
from ttutor.variants.bert.pretraining import BERTForMaskedLM, BERTForPreTraining, PreTrainingLogits

__all__ = ["BERT", "BERTConfig", "BERTForMaskedLM", "BERTForPreTraining", "PreTrainingLogits"]
