"""The words of the figure ``attention_steps``: its steps and its matrices."""

from typing import Any

LESSON: dict[str, Any] = {
    "steps": [  # name, title, what to see, formulas, matrices that it makes (each with one to show below)
        ["embed", "Vectors", "Each token is one row of d_model numbers. All the rest is made from these rows.",
         ["X"], [["X"]]],
        ["project", "Three views", "Three matrices turn each row into what it asks, how it is found and what it gives.",
         ["Q = X W_Q^T", "K = X W_K^T", "V = X W_V^T"], [["Q", "W_Q"], ["K", "W_K"], ["V", "W_V"]]],
        ["scores", "Compare", "Every query meets every key: one dot product a pair. Queries are rows, keys columns.",
         ["Q K^T"], [["QK"]]],
        ["scale", "Scale", "A dot product sums d_head terms: the more, the wider it spreads. Dividing undoes it.",
         ["S = Q K^T / √d_head"], [["S"]]],
        ["mask", "Mask", "No query may look at a later key: those scores become −∞.",
         ["S_masked : S_ij → −∞ if j > i"], [["M"]]],
        ["softmax", "Softmax", "Each row of scores becomes shares: none is negative, and a row sums to 1.",
         ["A = softmax( S )"], [["A"]]],
        ["blend", "Blend", "Each token receives the blend of all values, each with its weight: the output of the head.",
         ["A V"], [["AV"]]],
    ],
    "hint": "Point at, tap or move to a number for the sum that made it.",
    "parts": {  # what one number is called, rows, columns, colour, symbol
        "X": ["embedding", "tokens", "d_model"],
        "W_Q": ["projection", "d_head", "d_model", "query"],
        "W_K": ["projection", "d_head", "d_model", "key"],
        "W_V": ["projection", "d_value", "d_model", "value"],
        "Q": ["query", "tokens", "d_head", "query"],
        "K": ["key", "tokens", "d_head", "key"],
        "V": ["value", "tokens", "d_value", "value"],
        "QK": ["dot product", "queries", "keys", "", "Q K^T"],
        "S": ["score", "queries", "keys"],
        "M": ["masked score", "queries", "keys", "", "S_masked"],
        "A": ["weight", "queries", "keys", "weights"],
        "AV": ["context", "tokens", "d_value", "value", "A V"],
    },
}  # fmt: skip
"""What the figure and its table both say; in a formula ``_`` lowers and ``^T`` transposes."""
