"""What goes wrong when patches are taken out of an image one after another."""

import torch


def _curve(model, image, fill, order, columns, size, class_id):
    """Replace square after square, each by its rows and columns of pixels."""
    image, found = image.clone(), []
    for place in [None, *order]:
        if place is not None:
            top, left = place // columns * size, place % columns * size
            image[:, top : top + size, left : left + size] = fill[:, top : top + size, left : left + size]
        found.append(model(image[None])[0].softmax(dim=-1)[class_id])
    return torch.stack(found)


def _order(scores):
    return scores.flatten().argsort(descending=True).tolist()


def _shape(image, scores):
    return scores.shape[1], image.shape[2] // scores.shape[1]


def reference(model, image, fill, scores, class_id):
    return _curve(model, image, fill, _order(scores), *_shape(image, scores), class_id)


def lowest_first(model, image, fill, scores, class_id):
    return _curve(model, image, fill, _order(-scores), *_shape(image, scores), class_id)


def reading_order(model, image, fill, scores, class_id):
    return _curve(model, image, fill, list(range(scores.numel())), *_shape(image, scores), class_id)


def largest_number_first(model, image, fill, scores, class_id):
    return _curve(model, image, fill, _order(scores.abs()), *_shape(image, scores), class_id)


def grid_on_its_side(model, image, fill, scores, class_id):
    return _curve(model, image, fill, _order(scores.T), *_shape(image, scores), class_id)


def ranks_for_places(model, image, fill, scores, class_id):
    ranks = torch.tensor(_order(scores)).argsort().tolist()
    return _curve(model, image, fill, ranks, *_shape(image, scores), class_id)


def one_at_a_time(model, image, fill, scores, class_id):
    alone = [_curve(model, image, fill, [place], *_shape(image, scores), class_id)[-1:] for place in _order(scores)]
    return torch.cat([model(image[None]).softmax(dim=-1)[:, class_id], *alone])


def put_in(model, image, fill, scores, class_id):
    return _curve(model, fill, image, _order(scores), *_shape(image, scores), class_id)


def black(model, image, fill, scores, class_id):
    return reference(model, image, torch.zeros_like(fill), scores, class_id)


def one_pixel_each(model, image, fill, scores, class_id):
    columns, size = _shape(image, scores)
    image, found = image.clone(), [model(image[None])[0].softmax(dim=-1)[class_id]]
    for place in _order(scores):
        top, left = place // columns * size, place % columns * size
        image[:, top, left] = fill[:, top, left]
        found.append(model(image[None])[0].softmax(dim=-1)[class_id])
    return torch.stack(found)


def first_channel(model, image, fill, scores, class_id):
    mixed = image.clone()
    mixed[:1] = fill[:1]
    return reference(model, image, mixed, scores, class_id)


def logits_of_the_class(model, image, fill, scores, class_id):
    return reference(lambda x: model(x).exp().log(), image, fill, scores, class_id).logit()


def raw_logits(model, image, fill, scores, class_id):
    return _raw(model, image, fill, scores)[:, class_id]


def _raw(model, image, fill, scores):
    found = []
    reference(lambda x: found.append(model(x)) or found[-1], image, fill, scores, 0)
    return torch.cat(found)


def softmax_over_the_steps(model, image, fill, scores, class_id):
    return _raw(model, image, fill, scores).softmax(dim=0)[:, class_id]


def largest_class_each_time(model, image, fill, scores, class_id):
    return _raw(model, image, fill, scores).softmax(dim=-1).amax(dim=-1)


def first_answer_kept(model, image, fill, scores, class_id):
    return reference(model, image, fill, scores, int(model(image[None])[0].argmax()))


def without_the_beginning(model, image, fill, scores, class_id):
    return reference(model, image, fill, scores, class_id)[1:]


def without_the_end(model, image, fill, scores, class_id):
    return reference(model, image, fill, scores, class_id)[:-1]


def drop_instead(model, image, fill, scores, class_id):
    curve = reference(model, image, fill, scores, class_id)
    return curve[0] - curve
