"""Wrong answers to the exercise on scaled embeddings, as students write them."""

import math

import torch
from torch import nn
from torch.nn import functional


def no_scale(token_ids, table):
    return table[token_ids]


def div(token_ids, table):
    return table[token_ids] / math.sqrt(table.shape[-1])


def mul_d(token_ids, table):
    return table[token_ids] * table.shape[-1]


def scale_vocab(token_ids, table):
    return table[token_ids] * math.sqrt(table.shape[0])


def scale_tokens(token_ids, table):
    return table[token_ids] * math.sqrt(token_ids.shape[-1])


def whole_root(token_ids, table):
    return table[token_ids] * math.isqrt(table.shape[-1])


def whole_root_cut(token_ids, table):
    return table[token_ids] * int(table.shape[-1] ** 0.5)


def normalised(token_ids, table):
    return functional.normalize(table[token_ids], dim=-1) * math.sqrt(table.shape[-1])


def unit_variance(token_ids, table):
    rows = table[token_ids]
    return rows / rows.std(dim=-1, keepdim=True)


def shifted_ids(token_ids, table):
    return table[token_ids - 1] * math.sqrt(table.shape[-1])


def padding_zeroed(token_ids, table):
    return functional.embedding(token_ids, table) * (token_ids != 0)[..., None] * math.sqrt(table.shape[-1])


def one_row_per_token(token_ids, table):
    return table[token_ids[0]] * math.sqrt(table.shape[-1])


def columns(token_ids, table):
    return table.T[token_ids % table.shape[1]] * math.sqrt(table.shape[-1])


def features_first(token_ids, table):
    return (table[token_ids] * math.sqrt(table.shape[-1])).mT


def summed(token_ids, table):
    return table[token_ids].sum(dim=-2) * math.sqrt(table.shape[-1])


def scaled_once_more(token_ids, table):
    table *= math.sqrt(table.shape[-1])
    return table[token_ids]


def detached(token_ids, table):
    return table.detach()[token_ids] * math.sqrt(table.shape[-1])


def data_of_the_table(token_ids, table):
    return table.data[token_ids] * math.sqrt(table.shape[-1])


def frozen(token_ids, table):
    return nn.Embedding.from_pretrained(table)(token_ids) * math.sqrt(table.shape[-1])


def new_layer(token_ids, table):
    embedding = nn.Embedding(*table.shape)
    return embedding(token_ids).to(table.dtype) * math.sqrt(table.shape[-1])


def new_buffer(token_ids, table):
    vectors = torch.empty(*token_ids.shape, table.shape[-1], dtype=torch.float32)
    for place in torch.cartesian_prod(*map(torch.arange, token_ids.shape)).tolist():
        vectors[tuple(place)] = table[token_ids[tuple(place)]]
    return vectors * math.sqrt(table.shape[-1])


def float_one_hot(token_ids, table):
    hot = functional.one_hot(token_ids, table.shape[0]).float()
    return hot @ table.float() * math.sqrt(table.shape[-1])


def counted_classes(token_ids, table):
    hot = functional.one_hot(token_ids).to(table.dtype)
    return hot @ table * math.sqrt(table.shape[-1])
