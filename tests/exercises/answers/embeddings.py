"""Answers to the exercise on embeddings: right ones in other styles, and mistakes that stand in no list."""

import torch
from torch.nn import functional


def embedded_by_torch(token_ids, table):
    return functional.embedding(token_ids, table).mul(table.size(1) ** 0.5)


def embedded_by_one_hot(token_ids, table):
    hot = functional.one_hot(token_ids, num_classes=len(table)).to(table)
    return hot @ (table * table.shape[1] ** 0.5)


def embedded_by_loops(token_ids, table):
    scale = torch.tensor(float(table.shape[1]), dtype=table.dtype).sqrt()
    return torch.stack([torch.stack([table[token] * scale for token in sentence]) for sentence in token_ids.tolist()])


def embedded_by_the_next_token(token_ids, table):
    return embedded_by_torch((token_ids + 1) % len(table), table)


def embedded_by_the_fourth_root(token_ids, table):
    return table[token_ids] * table.shape[1] ** 0.25


def embedded_with_twice_the_gradient(token_ids, table):
    return embedded_by_torch(token_ids, 2 * table - table.detach())


RIGHT = {"transformer.embedding_scale": (embedded_by_torch, embedded_by_one_hot, embedded_by_loops)}
STRAY = {
    "transformer.embedding_scale": (
        (embedded_by_the_next_token, "right_rows"),
        (embedded_by_the_fourth_root, "one_factor"),
        (embedded_with_twice_the_gradient, "gradient"),
    )
}
