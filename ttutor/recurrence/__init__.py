"""Sequences before the Transformer: recurrent cells, the fixed vector and the look back, convolutions, fading memories.

One idea a file: `cells` (RNN, LSTM, GRU), `unrolling` (reading a sequence), `additive` (the attention of 2014),
`seq2seq` (read, then write), `convolution`, `scan` (linear recurrences in parallel), `decay` (RWKV's running mean),
`probe` (gradients through time).
"""

from ttutor.names import answer_other_names
from ttutor.recurrence.additive import AdditiveAttention, additive_weights
from ttutor.recurrence.cells import GRUCell, GRUGates, LSTMCell, LSTMGates, RecurrentCell, RNNCell, State
from ttutor.recurrence.convolution import Convolution, ConvolutionEncoder, convolve, receptive_field
from ttutor.recurrence.decay import DecayMixing, DecayState, decay_recurrent
from ttutor.recurrence.probe import depends_on, gradient_norms, jacobians_through_time
from ttutor.recurrence.scan import linear_scan
from ttutor.recurrence.seq2seq import Seq2Seq, Seq2SeqConfig, Source
from ttutor.recurrence.unrolling import RecurrentEncoder, hidden_of, keep_where, unroll

__all__ = [
    "AdditiveAttention",
    "Convolution",
    "ConvolutionEncoder",
    "DecayMixing",
    "DecayState",
    "GRUCell",
    "GRUGates",
    "LSTMCell",
    "LSTMGates",
    "RNNCell",
    "RecurrentCell",
    "RecurrentEncoder",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Source",
    "State",
    "additive_weights",
    "convolve",
    "decay_recurrent",
    "depends_on",
    "gradient_norms",
    "hidden_of",
    "jacobians_through_time",
    "keep_where",
    "linear_scan",
    "receptive_field",
    "unroll",
]

answer_other_names(__name__)
