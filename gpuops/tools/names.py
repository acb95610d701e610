"""Which functions of NumPy, CuPy and PyTorch gpuops has, and their names: a table for messages and for the docs."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

#: By topic, a line for each function: the name that it has, or would have, in gpuops, then in NumPy, CuPy and PyTorch.
#: "=" is the same name, "-" none, commas separate several. Names of SciPy are written in full.
TABLE = """
Reductions
sum               =                                =                              =
prod              =                                =                              =
max               =                                =                              =
min               =                                =                              =
amax              =                                =                              =
amin              =                                =                              =
ptp               =                                =                              -
mean              =                                =                              =
any               =                                =                              =
all               =                                =                              =
count_nonzero     =                                =                              =
average           =                                =                              -
sum_of_squares    -                                -                              -
vector_norm       linalg.vector_norm,linalg.norm   linalg.norm                    linalg.vector_norm,norm
matrix_norm       linalg.matrix_norm               linalg.norm                    linalg.matrix_norm

Reductions without NaN
nansum            =                                =                              =
nanprod           =                                =                              -
nanmax            =                                =                              -
nanmin            =                                =                              -
nanmean           =                                =                              =
nanvar            =                                =                              -
nanstd            =                                =                              -

Statistics
var               =                                =                              =
std               =                                =                              =
mean_var          -                                -                              var_mean
std_mean          -                                -                              =
median            =                                =                              =
nanmedian         =                                =                              =
quantile          =                                =                              =
nanquantile       =                                -                              =
percentile        =                                =                              -
nanpercentile     =                                -                              -
cov               =                                =                              =
corrcoef          =                                =                              =
histogram         =                                =                              =,histc
bincount          =                                =                              =
digitize          =                                =                              bucketize
mode              scipy.stats.mode                 -                              =

Scans
cumsum            =,cumulative_sum                 =                              =
cumprod           =,cumulative_prod                =                              =
nancumsum         =                                =                              -
nancumprod        =                                =                              -
cummax            maximum.accumulate               maximum.accumulate             =
cummin            minimum.accumulate               minimum.accumulate             =
logcumsumexp      logaddexp.accumulate             -                              =
diff              =                                =                              =
trapezoid         =                                =                              =
ediff1d           =                                =                              -

Searches and selection
argmax            =                                =                              =
argmin            =                                =                              =
nanargmax         =                                =                              -
nanargmin         =                                =                              -
max_with_index    -                                -                              max
min_with_index    -                                -                              min
where             =                                =                              =
nonzero           =                                =                              =
flatnonzero       =                                =                              -
argwhere          =                                =                              =
select            =                                =                              -
choose            =                                =                              -
compress          =                                =                              masked_select
extract           =                                =                              masked_select
masked_fill       putmask                          putmask                        =
take              =                                =                              =,index_select
take_along_axis   =                                =                              take_along_dim,gather
put_along_axis    =                                =                              scatter
searchsorted      =                                =                              =
isin              =                                =                              =

Sorting
sort              =                                =                              =
argsort           =                                =                              =
lexsort           =                                =                              -
partition         =                                =                              -
argpartition      =                                =                              -
topk              -                                -                              =
kthvalue          -                                -                              =
unique            =                                =                              =

Softmax and its like
softmax           scipy.special.softmax            cupyx.scipy.special.softmax    =,nn.functional.softmax
log_softmax       scipy.special.log_softmax        cupyx.scipy.special.log_softmax =,nn.functional.log_softmax
logsumexp         scipy.special.logsumexp          cupyx.scipy.special.logsumexp  =
logaddexp         =                                =                              =
sigmoid           scipy.special.expit              cupyx.scipy.special.expit      =
softplus          -                                -                              nn.functional.softplus
relu              -                                -                              =,nn.functional.relu
gelu              -                                -                              nn.functional.gelu
silu              -                                -                              nn.functional.silu
rms_norm          -                                -                              nn.functional.rms_norm
layer_norm        -                                -                              nn.functional.layer_norm
cross_entropy     -                                -                              nn.functional.cross_entropy
normalize         -                                -                              nn.functional.normalize

Products
matmul            =                                =                              =,mm,bmm,mv,addmm,baddbmm
dot               =                                =                              =
vdot              =                                =                              =
vecdot            =,linalg.vecdot                  -                              linalg.vecdot
inner             =                                =                              =
outer             =                                =                              =
kron              =                                =                              =
cross             =                                =                              =
tensordot         =                                =                              =
einsum            =                                =                              =
matrix_power      linalg.matrix_power              linalg.matrix_power            linalg.matrix_power
trace             =                                =                              =
convolve          =                                =                              nn.functional.conv1d
attention         -                                -                        nn.functional.scaled_dot_product_attention
solve             linalg.solve                     linalg.solve                   linalg.solve
inv               linalg.inv                       linalg.inv                     linalg.inv
det               linalg.det                       linalg.det                     linalg.det
svd               linalg.svd                       linalg.svd                     linalg.svd
qr                linalg.qr                        linalg.qr                      linalg.qr
eigh              linalg.eigh                      linalg.eigh                    linalg.eigh
cholesky          linalg.cholesky                  linalg.cholesky                linalg.cholesky
linalg            =                                =                              =
fft               =                                =                              =

Broadcasting and shapes
broadcast_to      =                                =                              =
expand            -                                -                              Tensor.expand
broadcast_arrays  =                                =                              broadcast_tensors
broadcast_shapes  =                                =                              =
reshape           =                                =                              =
ravel             =                                =                              =,flatten
squeeze           =                                =                              =
expand_dims       =                                =                              unsqueeze
transpose         =                                =                              permute
swapaxes          =                                =                              =,transpose
moveaxis          =                                =                              =,movedim
concatenate       =,concat                         =                              =,concat,cat
stack             =                                =                              =
hstack            =                                =                              =
vstack            =                                =                              =
split             =                                =                              =,tensor_split,chunk
repeat            =                                =                              repeat_interleave
tile              =                                =                              =
flip              =                                =                              =
roll              =                                =                              =
pad               =                                =                              nn.functional.pad
tril              =                                =                              =
triu              =                                =                              =
diag              =                                =                              =
meshgrid          =                                =                              =

Comparisons
allclose          =                                =                              =
array_equal       =                                =                              equal
isclose           =                                =                              =
equal             =                                =                              eq
not_equal         =                                =                              ne
less              =                                =                              =,lt
less_equal        =                                =                              =,le
greater           =                                =                              =,gt
greater_equal     =                                =                              =,ge
isnan             =                                =                              =
isinf             =                                =                              =
isfinite          =                                =                              =
logical_and       =                                =                              =
logical_or        =                                =                              =
logical_not       =                                =                              =
logical_xor       =                                =                              =

Elementwise
evaluate          -                                -                              -
lazy              -                                -                              -
add               =                                =                              =
subtract          =                                =                              =,sub
multiply          =                                =                              =,mul
divide            =,true_divide                    =,true_divide                  =,true_divide,div
floor_divide      =                                =                              =
remainder         =,mod                            =,mod                          =
power             =,pow                            =                              pow
negative          =                                =                              =,neg
reciprocal        =                                =                              =
absolute          =,abs                            =,abs                          =,abs
sign              =                                =                              =
square            =                                =                              =
sqrt              =                                =                              =
exp               =                                =                              =
expm1             =                                =                              =
log               =                                =                              =
log1p             =                                =                              =
log2              =                                =                              =
log10             =                                =                              =
sin               =                                =                              =
cos               =                                =                              =
tan               =                                =                              =
tanh              =                                =                              =
arctan2           =,atan2                          =                              =,atan2
erf               scipy.special.erf                cupyx.scipy.special.erf        =
floor             =                                =                              =
ceil              =                                =                              =
round             =,rint                           =,rint                         =
trunc             =                                =                              =
clip              =                                =                              =,clamp
maximum           =                                =                              =
minimum           =                                =                              =
nan_to_num        =                                =                              =
real              =                                =                              =
imag              =                                =                              =
conj              =                                =                              =
angle             =                                =                              =

Arrays and dtypes
array             =                                =                              tensor
asarray           =                                =                              =
asnumpy           -                                =                              Tensor.numpy
from_dlpack       =                                =                              =
zeros             =                                =                              =
ones              =                                =                              =
full              =                                =                              =
empty             =                                =                              =
zeros_like        =                                =                              =
ones_like         =                                =                              =
full_like         =                                =                              =
empty_like        =                                =                              =
arange            =                                =                              =
linspace          =                                =                              =
eye               =                                =                              =
copy              =                                =                              clone
ndarray           =                                =                              Tensor
dtype             =                                =                              =
result_type       =                                =                              =
bool              =                                =                              =
int8              =                                =                              =
int16             =                                =                              =
int32             =                                =                              =
int64             =                                =                              =
uint8             =                                =                              =
float16           =                                =                              =
float32           =                                =                              =
float64           =                                =                              =
complex64         =                                =                              =
complex128        =                                =                              =
inf               =                                =                              =
nan               =                                =                              =
newaxis           =                                =                              =
random            =                                =                              =,rand,randn
load              =                                =                              =
save              =                                =                              =

Tools
info              -                                -                              -
strategies        -                                -                              -
"""
LIBRARIES = {"numpy": "NumPy", "cupy": "CuPy", "torch": "PyTorch"}
SCIPY = ("scipy.", "cupyx.")


class Row(NamedTuple):
    """A function: the name that it has, or would have, in gpuops, and its names in each of the libraries."""

    name: str
    theirs: tuple[tuple[str, ...], ...]


def topics() -> dict[str, list[Row]]:
    """The rows of the table by topic.

    >>> topics()["Comparisons"][1]
    Row(name='array_equal', theirs=(('array_equal',), ('array_equal',), ('equal',)))
    """
    parts = [part.splitlines() for part in TABLE.strip().split("\n\n")]
    return {topic: [row(*line.split()) for line in lines] for topic, *lines in parts}


def row(name: str, *theirs: str) -> Row:
    """The row of a line."""
    return Row(name, tuple(() if names == "-" else tuple(names.replace("=", name).split(",")) for names in theirs))


def missing(name: str, public: Container[str]) -> AttributeError:
    """The error for a name that gpuops, with these public names, does not have. It says what to use instead.

    >>> print(missing("median", ["sum", "vector_norm"]))
    module 'gpuops' has no attribute 'median'; use numpy.median, cupy.median or torch.median
    >>> print(missing("norm", ["sum", "vector_norm"]))
    module 'gpuops' has no attribute 'norm'; use gpuops.vector_norm
    """
    message = f"module 'gpuops' has no attribute {name!r}"
    found = called(name)
    if found is None:
        return AttributeError(message)
    nearest = [min(names, key=lambda each: last(each) != name, default="") for names in found.theirs]  # itself, if any
    served = [full_name(library, each) for library, each in zip(LIBRARIES, nearest, strict=True) if each]
    served = [f"gpuops.{found.name}"] if found.name in public else served
    listed = " or ".join([", ".join(served[:-1]), served[-1]]) if served[1:] else served[0]
    return AttributeError(f"{message}; use {listed}", name=name)  # without obj, so that Python adds no "Did you mean"


def called(name: str) -> Row | None:
    """The row of the function with this name in NumPy, or else in CuPy, or else in PyTorch."""
    rows = [each for found in topics().values() for each in found]
    for i in range(len(LIBRARIES)):
        for each in rows:
            if name in map(last, each.theirs[i]):
                return each
    return None


def last(name: str) -> str:
    """A name without its modules."""
    return name.rpartition(".")[2]


def full_name(library: str, name: str) -> str:
    """A name with its library's."""
    return name if name.startswith(SCIPY) else f"{library}.{name}"
