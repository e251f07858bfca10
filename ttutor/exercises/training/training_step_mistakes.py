"""What goes wrong in one step of a training."""

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_


def no_zero_grad(model, optimizer, loss, batch, max_norm):
    model.train()
    value = loss(model, batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return value.item()


def zero_after_backward(model, optimizer, loss, batch, max_norm):
    model.train()
    value = loss(model, batch)
    value.backward()
    optimizer.zero_grad()
    optimizer.step()
    return value.item()


def no_backward(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    optimizer.step()
    return value.item()


def step_before_backward(model, optimizer, loss, batch, max_norm):
    model.train()
    value = loss(model, batch)
    optimizer.step()
    optimizer.zero_grad()
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    return value.item()


def step_between_zero_and_backward(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    optimizer.step()
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    return value.item()


def no_step(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    return value.item()


def no_clipping(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    optimizer.step()
    return value.item()


def clips_before_backward(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    clip_grad_norm_(model.parameters(), max_norm)
    value.backward()
    optimizer.step()
    return value.item()


def clips_after_step(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    optimizer.step()
    clip_grad_norm_(model.parameters(), max_norm)
    return value.item()


def _with_gradients_changed_by(change, model, optimizer, loss, batch):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    change(list(model.parameters()))
    optimizer.step()
    return value.item()


def clips_each_number(model, optimizer, loss, batch, max_norm):
    def clip(parameters):
        clip_grad_value_(parameters, max_norm)

    return _with_gradients_changed_by(clip, model, optimizer, loss, batch)


def clips_each_tensor(model, optimizer, loss, batch, max_norm):
    def clip(parameters):
        for parameter in parameters:
            clip_grad_norm_([parameter], max_norm)

    return _with_gradients_changed_by(clip, model, optimizer, loss, batch)


def always_rescales(model, optimizer, loss, batch, max_norm):
    def rescale(parameters):
        norm = torch.stack([parameter.grad.norm() for parameter in parameters]).norm()
        for parameter in parameters:
            parameter.grad *= max_norm / norm

    return _with_gradients_changed_by(rescale, model, optimizer, loss, batch)


def clips_to_one(model, optimizer, loss, batch, max_norm):
    return right_step(model, optimizer, loss, batch, 1.0)


def right_step(model, optimizer, loss, batch, max_norm):
    def clip(parameters):
        clip_grad_norm_(parameters, max_norm)

    return _with_gradients_changed_by(clip, model, optimizer, loss, batch)


def mode_untouched(model, optimizer, loss, batch, max_norm):
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return value.item()


def evaluation_mode(model, optimizer, loss, batch, max_norm):
    model.eval()
    return mode_untouched(model, optimizer, loss, batch, max_norm)


def keeps_the_graph(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = loss(model, batch)
    value.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return value


def loss_afterwards(model, optimizer, loss, batch, max_norm):
    right_step(model, optimizer, loss, batch, max_norm)
    return loss(model, batch).item()


def loss_twice(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    loss(model, batch).backward()
    clip_grad_norm_(model.parameters(), max_norm)
    value = loss(model, batch)
    optimizer.step()
    return value.item()


def steps_twice(model, optimizer, loss, batch, max_norm):
    value = right_step(model, optimizer, loss, batch, max_norm)
    optimizer.step()
    return value


def uphill(model, optimizer, loss, batch, max_norm):
    return -right_step(model, optimizer, lambda model, batch: -loss(model, batch), batch, max_norm)


def returns_the_norm(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    loss(model, batch).backward()
    norm = clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return norm.item()


def no_graph(model, optimizer, loss, batch, max_norm):
    model.train()
    optimizer.zero_grad()
    value = torch.tensor(loss(model, batch).item(), requires_grad=True)
    value.backward()
    optimizer.step()
    return value.item()
