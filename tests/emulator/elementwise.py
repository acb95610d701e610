"""The part of cupy.ElementwiseKernel that gpuops uses: raw arrays, scalars and an explicit size."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from .module import compile

_BLOCK = 128  # as CuPy launches

# dtype name -> C++ type; 16-bit floats are bits here, and complex numbers pairs.
_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "unsigned short",
    "bfloat16": "unsigned short",
    "float32": "float",
    "float64": "double",
    "complex64": "complex<float>",
    "complex128": "complex<double>",
}

# i runs over the elements in C order, whatever the strides, as in CuPy's CArray.
_RAW = """
#line 1 "elementwise.py"
template <class T> struct alignas(2 * sizeof(T)) complex { T re, im; };
template <int N> struct Layout { long long size, shape[N], strides[N]; };
template <class T, int N> struct Raw {
  T* first;
  const Layout<N>& layout;
  T& operator[](long long i) const {
    long long offset = 0;
    for (int axis = N - 1; axis >= 0; --axis) {
      offset += (axis ? i % layout.shape[axis] : i) * layout.strides[axis];
      i /= layout.shape[axis];
    }
    return *reinterpret_cast<T*>(reinterpret_cast<unsigned long long>(first) + offset);
  }
  T* data() const { return first; }
  long long size() const { return layout.size; }
};
"""


class _Param(NamedTuple):
    name: str
    type: str
    raw: bool
    const: bool


def _parse(params: str, const: bool) -> list[_Param]:
    found = []
    for param in filter(None, map(str.strip, params.split(","))):
        match = re.fullmatch(r"(raw\s+)?(\w+)\s+(\w+)", param)
        if match is None:
            raise ValueError(f"cannot read the parameter {param!r}")
        if match[3] in ("i", "n") or match[3].startswith("_"):
            raise ValueError(f"{param!r}: CuPy reserves the name {match[3]}")
        if not match[1] and (len(match[2]) == 1 or not const):
            raise ValueError(f"{param!r}: only raw arrays and scalars of a named type are emulated")
        found.append(_Param(match[3], match[2], bool(match[1]), const))
    return found


def _layout(array: np.ndarray) -> bytes:
    shape, strides = (array.shape, array.strides) if array.ndim else ((1,), (0,))
    return np.array([array.size, *shape, *strides], np.int64).tobytes()


class ElementwiseKernel:
    """A stand-in for cupy.ElementwiseKernel.

    >>> double = ElementwiseKernel("raw T x", "raw T y", "y[i] = 2 * x[i]", "double_")
    >>> double(np.arange(3), np.empty(3, int), size=3)
    array([0, 2, 4])
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        preamble: str = "",
    ) -> None:
        self.params = _parse(in_params, const=True) + _parse(out_params, const=False)
        self.operation, self.name, self.preamble = operation, name, preamble

    def __call__(self, *args: Any, size: int) -> Any:
        if len(args) != len(self.params):
            raise TypeError(f"{self.name}: got {len(args)} arguments, expected {len(self.params)}")
        outputs = [value for param, value in zip(self.params, args) if not param.const]
        if size:
            self._launch(args, size)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _launch(self, args: tuple[Any, ...], size: int) -> None:
        types: dict[str, str] = {}
        parameters, raws, values, labels = [], [], [], []
        for param, value in zip(self.params, args):
            kind = value.dtype.name if len(param.type) == 1 else param.type
            if types.setdefault(param.type, kind) != kind:
                raise TypeError(
                    f"{self.name}: {param.type} is {types[param.type]} and, for {param.name}, {kind}"
                )
            if param.raw:
                const, rank = "const " * param.const, max(value.ndim, 1)
                parameters += [
                    f"{const}{param.type}* {param.name}_first",
                    f"Layout<{rank}> {param.name}_layout",
                ]
                raws.append(
                    f"Raw<{const}{param.type}, {rank}> {param.name}{{{param.name}_first, {param.name}_layout}};"
                )
                values += [value, _layout(value)]
                labels += [param.name, f"the layout of {param.name}"]
            else:
                parameters.append(f"{param.type} {param.name}")
                values.append(np.dtype(param.type).type(value))
                labels.append(param.name)
        aliases = "".join(
            f"using {alias} = {_TYPES[kind]};\n" for alias, kind in types.items() if alias != "bool"
        )
        text = f"""{_RAW}
{aliases}
{self.preamble}
extern "C" __global__ void {self.name}({", ".join(parameters)}, long long _n) {{
  {" ".join(raws)}
  for (long long i = (long long)blockIdx.x * {_BLOCK} + threadIdx.x; i < _n; i += (long long)gridDim.x * {_BLOCK}) {{
#line 1 "{self.name}"
    {self.operation};
  }}
}}
"""
        grid = (-(-size // _BLOCK), 1, 1)
        compile(text, self.name).launch(
            self.name, grid, (_BLOCK, 1, 1), [*values, size], labels=[*labels, "size"]
        )
