"""Wrong answers to the exercise on softmax. They carry no annotations: what they return is wrong on purpose."""


def wrong_dim(scores, dim=-1):
    return scores.softmax(dim=0)


def ignores_dim(scores, dim=-1):
    return scores.softmax(dim=-1)


def default_is_one(scores, dim=1):
    return scores.softmax(dim=dim)


def unstable(scores, dim=-1):
    powers = scores.exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def row_minimum(scores, dim=-1):
    powers = (scores - scores.amin(dim=dim, keepdim=True)).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def row_mean(scores, dim=-1):
    powers = (scores - scores.mean(dim=dim, keepdim=True)).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def one_maximum(scores, dim=-1):
    powers = (scores - scores.max()).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def clamped(scores, dim=-1):
    powers = scores.clamp(-80.0, 80.0).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def clamped_above(scores, dim=-1):
    powers = scores.clamp(max=80.0).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def global_sum_of_any_size(scores, dim=-1):
    return scores.exp() / scores.exp().sum()


def global_sum(scores, dim=-1):
    powers = (scores - scores.max()).exp()
    return powers / powers.sum()


def global_sum_of_safe_rows(scores, dim=-1):
    powers = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return powers / powers.sum()


def no_keepdim(scores, dim=-1):
    powers = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return powers / powers.sum(dim=dim)


def divides_by_largest(scores, dim=-1):
    powers = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return powers / powers.amax(dim=dim, keepdim=True)


def no_exponential(scores, dim=-1):
    return scores / scores.sum(dim=dim, keepdim=True)


def base_two(scores, dim=-1):
    powers = 2 ** (scores - scores.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


def sigmoid(scores, dim=-1):
    return scores.sigmoid()


def hardmax(scores, dim=-1):
    return (scores == scores.amax(dim=dim, keepdim=True)).to(scores.dtype)


def log_softmax(scores, dim=-1):
    return scores.log_softmax(dim=dim)


def neg(scores, dim=-1):
    return (-scores).softmax(dim=dim)


def distance_to_maximum(scores, dim=-1):
    powers = (scores.amax(dim=dim, keepdim=True) - scores).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


def casts_to_float32(scores, dim=-1):
    return scores.float().softmax(dim=dim)


def inplace(scores, dim=-1):
    scores -= scores.amax(dim=dim, keepdim=True)
    powers = scores.exp()
    return powers / powers.sum(dim=dim, keepdim=True)
