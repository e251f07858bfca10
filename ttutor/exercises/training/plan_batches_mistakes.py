"""Wrong answers to the exercise on planning batches."""


def _filled(order, lengths, budget, *, last=True, over=0, empty=False):
    batches, current = [], []
    for index in order:
        longest = max([lengths[index], *(lengths[other] for other in current)])
        if (current or empty) and (len(current) + 1) * longest > budget + over:
            batches.append(current)
            current = []
        current.append(index)
    return [*batches, current] if last else batches


def _upwards(lengths):
    return sorted(range(len(lengths)), key=lambda index: lengths[index])


def in_the_order_of_the_text(lengths, budget):
    return _filled(range(len(lengths)), lengths, budget)


def last_batch_forgotten(lengths, budget):
    return _filled(_upwards(lengths), lengths, budget, last=False)


def sum_of_lengths(lengths, budget):
    """The budget bounds the real tokens, not the cells."""
    batches, current, total = [], [], 0
    for index in _upwards(lengths)[::-1]:
        if current and total + lengths[index] > budget:
            batches.append(current)
            current, total = [], 0
        current.append(index)
        total += lengths[index]
    return [*batches, current]


def looked_after_adding(lengths, budget):
    """The batch is closed when it is over the budget already."""
    batches, current = [], []
    for index in _upwards(lengths):
        current.append(index)
        if len(current) * lengths[index] > budget:
            batches.append(current)
            current = []
    return [*batches, current] if current else batches


def sentence_at_the_cut_lost(lengths, budget):
    batches, current = [], []
    for index in _upwards(lengths):
        if current and (len(current) + 1) * lengths[index] > budget:
            batches.append(current)
            current = []
        else:
            current.append(index)
    return [*batches, current]


def sentence_at_the_cut_twice(lengths, budget):
    batches, current = [], []
    for index in _upwards(lengths):
        if current and (len(current) + 1) * lengths[index] > budget:
            batches.append([*current, index] if (len(current) + 1) * lengths[index] <= budget + 20 else current)
            current = []
        current.append(index)
    return [*batches, current]


def each_alone(lengths, budget):
    return [[index] for index in range(len(lengths))]


def always_the_same_number(lengths, budget):
    n_sentences = budget // max(lengths)
    order = _upwards(lengths)
    return [order[start : start + n_sentences] for start in range(0, len(order), n_sentences)]


def begins_with_an_empty_batch(lengths, budget):
    """The full budget is refused, also to a sentence that is alone."""
    return _filled(_upwards(lengths)[::-1], lengths, budget, over=-1, empty=True)


def lengths_returned(lengths, budget):
    return [[lengths[index] for index in batch] for batch in _filled(_upwards(lengths), lengths, budget)]


def places_in_the_sorted_list(lengths, budget):
    place = {index: place for place, index in enumerate(_upwards(lengths))}
    return [[place[index] for index in batch] for batch in _filled(_upwards(lengths), lengths, budget)]


def all_in_one(lengths, budget):
    return [list(range(len(lengths)))]
