"""What goes wrong when a loss is measured on held-out text."""

import torch


def mean_over_tokens(model, batches, loss):
    sums = [(value.item(), n_tokens) for value, n_tokens in (loss(model, batch) for batch in batches)]
    return sum(value for value, _ in sums) / sum(n_tokens for _, n_tokens in sums)


def _measured(model, batches, loss, summarise=mean_over_tokens):
    """Measure as one should, but for what is summarised."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        result = summarise(model, batches, loss)
    model.train(was_training)
    return result


def mode_untouched(model, batches, loss):
    with torch.no_grad():
        return mean_over_tokens(model, batches, loss)


def training_mode(model, batches, loss):
    was_training = model.training
    model.train()
    with torch.no_grad():
        result = mean_over_tokens(model, batches, loss)
    model.train(was_training)
    return result


def stays_in_evaluation(model, batches, loss):
    model.eval()
    with torch.no_grad():
        return mean_over_tokens(model, batches, loss)


def always_back_to_training(model, batches, loss):
    result = stays_in_evaluation(model, batches, loss)
    model.train()
    return result


def records_a_graph(model, batches, loss):
    was_training = model.training
    model.eval()
    result = mean_over_tokens(model, batches, loss)
    model.train(was_training)
    return result


def no_grad_without_with(model, batches, loss):
    torch.no_grad()
    return records_a_graph(model, batches, loss)


def switches_gradients_off(model, batches, loss):
    torch.set_grad_enabled(False)
    return records_a_graph(model, batches, loss)


def freezes_the_model(model, batches, loss):
    model.requires_grad_(False)
    return _measured(model, batches, loss)


def mean_of_means(model, batches, loss):
    def summarise(model, batches, loss):
        means = [value.item() / n_tokens for value, n_tokens in (loss(model, batch) for batch in batches)]
        return sum(means) / len(means)

    return _measured(model, batches, loss, summarise)


def per_batch(model, batches, loss):
    def summarise(model, batches, loss):
        sums = [loss(model, batch)[0].item() for batch in batches]
        return sum(sums) / len(sums)

    return _measured(model, batches, loss, summarise)


def summed(model, batches, loss):
    def summarise(model, batches, loss):
        return sum(loss(model, batch)[0].item() for batch in batches)

    return _measured(model, batches, loss, summarise)


def first_batch(model, batches, loss):
    def summarise(model, batches, loss):
        return mean_over_tokens(model, [next(iter(batches))], loss)

    return _measured(model, batches, loss, summarise)


def last_batch(model, batches, loss):
    def summarise(model, batches, loss):
        return mean_over_tokens(model, list(batches)[-1:], loss)

    return _measured(model, batches, loss, summarise)


def loses_the_first(model, batches, loss):
    def summarise(model, batches, loss):
        remaining = iter(batches)
        next(remaining)
        return mean_over_tokens(model, remaining, loss)

    return _measured(model, batches, loss, summarise)


def two_passes(model, batches, loss):
    def summarise(model, batches, loss):
        sums = sum(loss(model, batch)[0].item() for batch in batches)
        return sums / sum(loss(model, batch)[1] for batch in batches)

    return _measured(model, batches, loss, summarise)


def asks_for_the_length(model, batches, loss):
    def summarise(model, batches, loss):
        return mean_over_tokens(model, [next(batches) for _ in range(len(batches))], loss)

    return _measured(model, batches, loss, summarise)


def perplexity(model, batches, loss):
    def summarise(model, batches, loss):
        return torch.tensor(mean_over_tokens(model, batches, loss)).exp().item()

    return _measured(model, batches, loss, summarise)


def trains(model, batches, loss):
    was_training = model.training
    model.eval()

    def learning(model, batch):
        value, n_tokens = loss(model, batch)
        value.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
        return value, n_tokens

    result = mean_over_tokens(model, batches, learning)
    model.train(was_training)
    return result
