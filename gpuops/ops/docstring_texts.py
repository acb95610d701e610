"""The texts that docstrings of public functions share; `docstrings` fills them in.

The names with ``standard`` are those of `gpuops.array_api`.
"""

PARAMETERS = {
    "a": """
a : array_like
    {array}
    bool, integer, floating (including float16 and bfloat16) or complex.""",
    "x": """
x : array_like
    {array}
    bool, integer, floating (including float16 and bfloat16) or complex.""",
    "axis": """
axis : None, int or tuple of ints, optional
    Axes to reduce; None reduces all of them.""",
    "search_axis": """
axis : None or int, optional
    Axis to search along; None searches the whole array, with indices in C order.""",
    "scan_axis": """
axis : None or int, optional
    Axis to scan along; None scans the whole array as one line, in C order, and the result has one dim.""",
    "cumulative_axis": """
axis : None or int, optional
    Axis to scan along; required if ``x`` has more than one dim.""",
    "include_initial": """
include_initial : bool, optional
    Begin with the result of no elements, which makes the axis longer by one.""",
    "reverse": """
reverse : bool, optional
    Scan from the last element to the first: each result covers the elements from its own on.""",
    "exclusive": """
exclusive : bool, optional
    Exclude the element itself: each result covers the elements before it, and the first is the result of none.""",
    "softmax_axis": """
axis : None, int or tuple of ints, optional
    Axes to normalise over; None takes the whole array.""",
    "dtype": """
dtype : dtype, optional
    Dtype of the computation and the result; by default NumPy's choice.""",
    "variance_dtype": """
dtype : dtype, optional
    Floating or complex dtype of the computation; by default that of ``a``, and float64 for integers. If ``a`` is
    complex, it sets the precision of the real and imaginary parts.""",
    "softmax_dtype": """
dtype : dtype, optional
    Floating dtype of the result; by default that of the input, and float64 for integers. Half types are computed in
    float32 and rounded once.""",
    "out": """
out : ndarray, optional
    Array for the result, of its shape, any strides and a dtype to which it casts. It may overlap the operands.""",
    "search_out": """
out : ndarray, optional
    Array for the result, of its shape, any strides and an integer dtype that casts safely to int64. It may overlap
    ``a``.""",
    "softmax_out": """
out : ndarray, optional
    Array for the result, of the shape of ``x``, any strides and a dtype to which it casts. ``out=x`` works in
    place.""",
    "ddof": """
ddof : float, optional
    Delta degrees of freedom: the divisor is ``N - ddof``, where ``N`` is the number of elements.""",
    "correction": """
correction : float, optional
    The array API standard's name for ``ddof``.""",
    "keepdims": """
keepdims : bool, optional
    Keep the reduced axes, with length 1.""",
    "initial": """
initial : scalar, optional
    Value that takes part in every reduction. A 0-d GPU array is copied to the host first, which synchronises.""",
    "where": """
where : array_like of bool, optional
    Mask of the elements to include; it broadcasts to the array's shape.""",
    "ord": """
ord : float, optional
    The order: 2 is the Euclidean norm, 1 the sum of magnitudes, inf and -inf the greatest and the least magnitude,
    and 0 the number of non-zero elements. Any other p is the sum of the p-th powers of magnitudes, to the power of
    1 / p.""",
    "scale": """
scale : float, optional
    Factor on ``x``, by default 1: the inverse temperature. A 0-d GPU array is copied to the host first, which
    synchronises.""",
    "strategy": """
strategy : str, optional
    {strategy_names}""",
    "classic_strategy": """
strategy : str, optional
    {strategy_names}
    {classic}""",
    "host_strategy": """
strategy : str, optional
    {strategy_names}
    {classic}
    Those whose names end in ``_host`` reduce them on the host, for comparison: this is slow, synchronises, and
    takes workspace for at least one partial result per output.""",
    "standard_x": """
x : array
    An array of NumPy, CuPy or another library (docs/interop.md), of any shape and strides.""",
    "standard_correction": """
correction : float, optional
    Delta degrees of freedom: the divisor is ``N - correction``, where ``N`` is the number of elements.""",
}

TEXTS = {
    "arrays": """
Arrays of NumPy, CuPy or another library (docs/interop.md), of any shape, strides and numeric dtype.""",
    "classic": """
The classic ones, ``cross``, ``interleaved`` and ``shuffle``, reduce the partial results of their blocks in a
second launch; they take up to 1 MiB of workspace per call.""",
    "strategy_names": """
One of ``gpuops.strategies("{op}")``; None picks the fastest. It matters on a GPU only.""",
    "array": """
An array of NumPy, CuPy or another library (docs/interop.md), of any shape and strides;""",
    "like_input": """
The array library and the device are the input's.""",
    "workspace": """
On a GPU, each thread keeps 1 MiB of workspace per stream, and each captured CUDA graph has its own.""",
    "skips_nan": """
On a GPU, NaN is skipped as the elements are read: there is no mask in memory and no second pass.""",
    "counting": """
On a GPU, the true elements are counted first, and the host waits for their number: so such a call cannot be
captured into a graph. The workspace has a bit for each element of the condition.""",
    "order": """
NaN wins over numbers; complex numbers are ordered by real part, then by imaginary part.""",
    "comparison": """
A bool for NumPy arrays; on a GPU a 0-d array, whose ``bool()`` synchronises. No temporary arrays are made.
{workspace}""",
    "parameters": """
Parameters
----------
{a}
{axis}
{dtype}
{out}
{keepdims}
{initial}
{where}""",
    "raises": """
Raises
------
{AxisError}
{TypeError}
{ValueError}""",
    "reduction": """
{parameters}
{host_strategy}

{results}""",
    "truth": """
NaN is true.

{parameters}
{host_strategy}

Returns
-------
ndarray or scalar
    The dtype is bool, or that of ``out``.
    {like_input}
    {workspace}

{raises}""",
    "extreme": """
{order}
An empty or masked reduction needs ``initial``.

{parameters}
{host_strategy}

{extreme_results}""",
    "nan_reduction": """
{parameters}
{strategy}

{results}""",
    "nan_extreme": """
The result is NaN where all elements are NaN; the CPU then gives NumPy's warning. An empty or masked reduction needs
``initial``.

{parameters}
{strategy}

{extreme_results}""",
    "results": """
Returns
-------
ndarray or scalar
    {like_input}
    {workspace}

{raises}""",
    "extreme_results": """
Returns
-------
ndarray or scalar
    {like_input}
    {workspace}

Raises
------
{AxisError}
{TypeError}
{ValueError} there is nothing to reduce, or a mask is given, without ``initial``""",
    "variance_parameters": """
Parameters
----------
{a}
{axis}
{variance_dtype}
{out}
{ddof}
{keepdims}
{where}
{correction}
{strategy}""",
    "variance": """
{variance_parameters}

Returns
-------
ndarray or scalar
    The dtype is real, also for complex ``a``.
    {like_input}
    {workspace}

{raises}""",
    "nan_variance": """
The result is NaN where ``N - ddof`` is not positive; the CPU then gives NumPy's warning.

{variance}""",
    "search": """
{order}

{search_parameters}
{classic_strategy}

{search_results}
{ValueError} there is nothing to search""",
    "nan_search": """
Where all elements are NaN, the result is -1 on a GPU, since raising would synchronise; the CPU raises a ValueError,
as NumPy does.

{search_parameters}
{strategy}

{search_results}
{ValueError} there is nothing to search; if all elements are NaN, on the CPU""",
    "search_parameters": """
Parameters
----------
{a}
{search_axis}
{search_out}
{keepdims}""",
    "search_results": """
Returns
-------
ndarray or scalar
    The dtype is int64.
    {like_input}
    {workspace}

Raises
------
{AxisError}
{TypeError}""",
    "with_index": """
{order}

Parameters
----------
{a}
{search_axis}
{keepdims}
{strategy}

Returns
-------
values, indices : ndarray or scalar
    A named tuple: elements, of the dtype of ``a``, and their indices, int64.
    {like_input}
    {workspace}

Raises
------
{AxisError}
{TypeError}
{ValueError} there is nothing to search""",
    "scan": """
Parameters
----------
{a}
{scan_axis}
{dtype}
{out}
{reverse}
{exclusive}
{strategy}
    ``hillis_steele`` takes lines of at most 1024 elements, ``blelloch`` of 4096; ``hillis_steele`` and ``warp``
    merge in an order of their own, so they take no products of floats. ``three_pass`` takes workspace for one
    state per 4096 elements of a line.

Returns
-------
ndarray
    It has the memory layout of ``a``.
    {like_input}
    {workspace}

{raises}""",
    "softmax": """
Parameters
----------
x : array_like
    {array}
    bool, integer or floating (including float16 and bfloat16).
{softmax_axis}
{softmax_dtype}
{softmax_out}
{where}
{scale}
{strategy}
    ``warp`` takes rows of at most 1024 elements; ``rows``, ``columns`` and ``grid`` take rows that fit on the
    GPU's chip; ``two_pass_host`` reduces the partial results of its blocks on the host, for comparison, which is
    slow.

Returns
-------
ndarray
    It has the memory layout of ``x``.
    {like_input}
    On a GPU, rows that do not fit on its chip take 8 bytes of workspace each (float64: 16) and up to 1 MiB more.

Raises
------
{AxisError}
{TypeError}
{ValueError} the strategy does not apply""",
    "standard_parameters": """
Parameters
----------
{standard_x}
{axis}
{dtype}
{standard_correction}
{keepdims}""",
    "standard": """
{standard_parameters}

Returns
-------
array
    {standard_result}

{raises}""",
    "standard_scan": """
Parameters
----------
{standard_x}
{cumulative_axis}
{dtype}
{include_initial}

Returns
-------
array
    The library and the device are the input's.

Raises
------
{AxisError}
{TypeError}
{ValueError} ``x`` has several dims and no axis is given""",
    "standard_result": """
The library and the device are the input's; the result is 0-d if all axes are reduced.""",
}

#: When an error is raised, by parameters: a function that has one of them raises it.
CONDITIONS: dict[str, dict[tuple[str, ...], str]] = {
    "AxisError": {("axis",): "an axis is out of range"},
    "TypeError": {
        ("where", "out", "a2", "b", "x2", "y", "weights"): "arrays of different libraries are mixed",
        ("a", "x", "a1", "x1"): "a dtype is not supported",
        ("axis",): "an axis is not an int",
        ("out",): "the result cannot be cast to the dtype of ``out``",
        ("ddof",): "``ddof`` is not a real number",
        ("scale",): "``scale`` is not a real number",
    },
    "ValueError": {
        ("out",): "``out`` has another shape, is read-only or overlaps itself",
        ("where",): "``where`` does not broadcast to the array's shape",
        ("ddof",): "both ``ddof`` and ``correction`` are given",
        ("strategy",): "the strategy is unknown",
    },
}
