"""The ordinary words of Python, PyTorch, NumPy and einops: what right answers are written in.

None of them leads to a function by its name, to another's memory or to the program around an answer. Of PyTorch they
are the functions that compute with numbers and move them, and the modules that are nothing more than that; what an
exercise asks to be built is taken out again for that exercise.
"""

from __future__ import annotations

BUILTINS = frozenset(
    """
    abs all any bool bytes callable chr complex dict divmod enumerate filter float format frozenset int isinstance
    issubclass iter len list map max min next object ord pow print property range repr reversed round set slice
    sorted staticmethod classmethod str sum super tuple type zip hash hasattr input id bin oct hex ascii bytearray
    Ellipsis NotImplemented None True False ArithmeticError AssertionError AttributeError Exception
    FloatingPointError IndexError KeyError LookupError NotImplementedError OverflowError RuntimeError StopIteration
    TypeError ValueError Warning UserWarning ZeroDivisionError
    """.split()
)
MODULES = frozenset(
    """
    torch torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.optim torch.linalg torch.nn.parameter
    torch.nn.modules torch.distributions
    numpy math cmath einops jaxtyping typing collections collections.abc itertools functools
    dataclasses random copy abc enum heapq bisect fractions statistics numbers decimal __future__
    """.split()
)
BASES = frozenset("Module Sequential ModuleList object NamedTuple Protocol ABC Enum Generic TypedDict".split()) | {
    one for one in BUILTINS if one.endswith(("Error", "Exception"))
}
METHODS = frozenset(
    f"__{name}__"
    for name in "init call len iter next getitem setitem contains repr str post_init enter exit add radd sub mul rmul "
    "matmul truediv neg eq lt le gt ge hash name doc".split()
)
"""The methods between double underscores that a class of one's own may have."""
READABLE = frozenset("__init__ __getitem__ __len__ __call__".split())
"""Those of them that may be named of anything."""
OVERRIDABLE = frozenset("forward extra_repr".split())
"""What of a module of PyTorch a class of one's own may write anew."""
SETTABLE = frozenset("grad data requires_grad training weight bias".split())
"""What of an object that is not one's own is made to be set."""

_TENSORS = """
    abs absolute acos add addcdiv addcmul addmm all allclose amax amin aminmax angle any apply_ arange argmax argmin
    argsort argwhere as_strided as_tensor asin atan atan2 baddbmm bernoulli bernoulli_ bincount bitwise_and
    bitwise_not bitwise_or bmm bool broadcast_tensors broadcast_to bucketize byte cartesian_prod cat cdist ceil
    chunk clamp clamp_ clamp_max clamp_min clip clone column_stack combinations complex concat concatenate conj
    contiguous copy_ copysign cos cosh count_nonzero cpu cross cummax cummin cumprod cumsum deg2rad det detach
    detach_ device diag diag_embed diagflat diagonal diff dim dist div div_ divide dot double dsplit dstack dtype
    einsum element_size empty empty_like eq equal erf erfc exp exp2 exp_ expand expand_as expm1 eye fill_
    fill_diagonal_ finfo flatten flip fliplr flipud float float16 float32 float64 bfloat16 floor floor_divide fmod
    frac from_numpy full full_like gather ge geqrf ger get_default_dtype gt half hstack hypot iinfo imag index_add
    index_add_ index_copy index_fill index_fill_ index_select index_put inf inner int int8 int16 int32 int64 inverse
    is_complex is_floating_point is_tensor isclose isfinite isin isinf isnan item kron le lerp linspace log log10
    log1p log2 logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logspace logsumexp
    long lt manual_seed masked_fill masked_fill_ masked_scatter masked_select matmul matrix_power max maximum mean
    median meshgrid min minimum mm mode moveaxis movedim mT mH mul mul_ multinomial multiply mv nan nan_to_num
    nanmean nansum narrow ndim ndimension ne neg negative nelement new_empty new_full new_ones new_tensor new_zeros
    nonzero norm normal_ no_grad enable_grad inference_mode is_grad_enabled set_grad_enabled not_equal numel numpy
    one_hot ones ones_like orgqr outer pad permute pi pow prod put_ quantile rad2deg rand rand_like randint randn
    randn_like randperm ravel real reciprocal relu remainder repeat repeat_interleave requires_grad requires_grad_
    reshape reshape_as resolve_conj roll rot90 round row_stack rsqrt rsub scatter scatter_ scatter_add scatter_add_
    searchsorted select sgn shape sigmoid sign signbit sin sinc sinh size slogdet softplus sort split square sqrt
    squeeze stack std std_mean sub sub_ subtract sum svd swapaxes swapdims T t take take_along_dim tan tanh tensor
    tensordot tensor_split tile to tolist topk trace transpose trapezoid trapz tril tril_indices triu triu_indices
    true_divide trunc type type_as unbind unflatten unfold uniform_ unique unique_consecutive unravel_index
    unsqueeze vander var var_mean vdot view view_as view_as_complex view_as_real vsplit vstack where xlogy zero_
    zeros zeros_like Generator generator linalg finfo device eps tiny max_seqlen retain_grad backward grad data
    is_leaf relu_ sqrt_ log_ neg_ add_ pow_ tanh_ sigmoid_ square_ transpose_ unsqueeze_ squeeze_ triu_
    tril_ addcmul_ addcdiv_ lerp_ masked_scatter_ sum_to_size polar nanmedian histc block_diag chain_matmul cholesky
    cov corrcoef softmax log_softmax softmin dropout silu gelu elu leaky_relu logsigmoid tanhshrink normalize
    cosine_similarity pairwise_distance mse_loss l1_loss kl_div embedding linear interpolate fold conv1d conv2d
    conv_transpose2d avg_pool1d avg_pool2d max_pool2d adaptive_avg_pool2d cross_entropy nll_loss layer_norm rms_norm
    scaled_dot_product_attention glu binary_cross_entropy_with_logits mse set_default_dtype vector_norm matrix_norm
    solve inv pinv lstsq eigh eigvalsh eig qr matrix_rank multi_dot long int uint8 bool indices logit matrix_exp
    special ndtr expit entr gammaln autograd jacobian hessian erfinv logcumsumexp cosine_similarity pixel_unshuffle
    pixel_shuffle clamp_min_ clamp_max_ is_cuda names storage_offset stride is_contiguous complex64 complex128
    distributions Normal Bernoulli Uniform cdf
"""
_NEURAL = """
    nn functional Module Parameter ModuleList ModuleDict Sequential Linear Embedding Identity Conv1d Conv2d Dropout
    LayerNorm RMSNorm Softmax LogSoftmax ReLU GELU SiLU Sigmoid Tanh Flatten Unflatten Bilinear MSELoss L1Loss
    CrossEntropyLoss NLLLoss KLDivLoss ParameterList ParameterDict Unfold Fold Tensor LongTensor FloatTensor
    BoolTensor Size dtype device memory_format parameters named_parameters buffers named_buffers modules
    named_modules children named_children register_buffer register_parameter train eval training state_dict
    load_state_dict zero_grad step weight bias in_features out_features embedding_dim num_embeddings add_module
    append extend insert forward clip_grad_norm_ clip_grad_value_ init xavier_uniform_ xavier_normal_
    kaiming_uniform_ normal_ zeros_ ones_ constant_ trunc_normal_ optim SGD Adam AdamW param_groups utils
    weight_norm from_pretrained cuda is_available
"""
_PYTHON = """
    append clear copy count extend index insert pop remove reverse sort add discard union intersection difference
    issubset issuperset symmetric_difference update get items keys values setdefault popitem fromkeys join split
    rsplit splitlines strip lstrip rstrip startswith endswith lower upper replace find rfind isalpha isdigit isalnum
    isspace partition rpartition removeprefix removesuffix title zfill ljust rjust center casefold bit_length
    is_integer real imag conjugate numerator denominator hex most_common total elements appendleft popleft rotate
    maxlen move_to_end write flush seed choice choices shuffle sample gauss random randrange uniform acos acosh asin
    atan atan2 ceil comb cos cosh degrees dist e erf erfc exp expm1 fabs factorial floor fmod frexp fsum gamma gcd
    hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan perm pi pow prod
    radians remainder sin sinh sqrt tan tanh tau trunc accumulate batched chain combinations
    combinations_with_replacement compress count cycle dropwhile filterfalse groupby islice pairwise permutations
    product repeat starmap takewhile tee zip_longest from_iterable cache lru_cache partial reduce wraps
    cached_property Counter OrderedDict defaultdict deque namedtuple ChainMap dataclass field astuple deepcopy
    replace heappush heappop heapify nlargest nsmallest heappushpop heapreplace merge bisect bisect_left
    bisect_right insort Fraction Decimal mean median stdev variance mode abstractmethod auto Any Callable ClassVar
    Dict Final FrozenSet Generic Iterable Iterator List Literal Mapping MutableMapping NamedTuple Optional Protocol
    Sequence Set Sized Tuple Type TypeVar Union Generator Hashable Collection overload cast Self Bool Float Int
    Integer Num Shaped Complex UInt8 Int64 Float32 ABC Enum annotations name value rearrange reduce repeat einsum
    pack unpack parse_shape Rearrange Reduce
"""
_NUMPY = """
    array asarray ascontiguousarray ndarray newaxis astype nditer amax amin float_ int_ bool_ expand_dims
    concatenate full zeros ones empty eye identity arange linspace where clip cumsum cumprod dot matmul einsum
    maximum minimum add subtract multiply divide power floor_divide mod exp log sqrt square sum prod mean std var
    argmax argmin argsort sort unique take put reshape ravel transpose swapaxes moveaxis stack hstack vstack tile
    repeat tril triu diag trace outer inner allclose isclose array_equal isnan isfinite nan_to_num nonzero
    flatnonzero count_nonzero any all logical_and logical_or logical_not integer floating number default_rng normal
    standard_normal bincount interp round rint sign copy fill item itemsize nbytes
"""
ATTRIBUTES = frozenset(f"{_TENSORS} {_NEURAL} {_PYTHON} {_NUMPY}".split())
"""Attributes, and names that are imported from a module."""
