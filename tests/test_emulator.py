"""Each fault that the emulator reports, planted next to a correct version."""

from __future__ import annotations

import numpy as np
import pytest

from tests import emulator
from tests.emulator import ElementwiseKernel, EmulatorError, compile, empty
from tests.layouts import DTYPES

pytestmark = pytest.mark.skipif(emulator.available() is not None, reason=str(emulator.available()))

ONE = (1, 1, 1)


def launch(text, args, grid=1, block=32, kernel="k", **options):
    grid, block = ((size, 1, 1) if isinstance(size, int) else size for size in (grid, block))
    compile(text).launch(kernel, grid, block, args, **options)


def kernel(params, body, before=""):
    return f'{before}\nextern "C" __global__ void k({params}) {{\n{body}\n}}\n'


def without(text, removed, occurrence=0):
    """The text without one occurrence of a statement."""
    parts = text.split(removed)
    assert len(parts) > occurrence + 1
    return (
        removed.join(parts[: occurrence + 1])
        + removed.join(["", *parts[occurrence + 1 :]])[len(removed) :]
    )


# ---- out of bounds ------------------------------------------------------------------------------

ITEMS = {
    1: ("unsigned char", "uint8"),
    2: ("unsigned short", "uint16"),
    4: ("float", "float32"),
    8: ("double", "float64"),
    16: ("float4", "complex128"),
}


@pytest.mark.parametrize("size", ITEMS)
@pytest.mark.parametrize("shift", [-1, 0, 1])
@pytest.mark.parametrize("access", ["reads", "writes"])
def test_out_of_bounds_global_accesses_are_reported(size, shift, access):
    ctype, dtype = ITEMS[size]
    source, target = ("i + shift", "i") if access == "reads" else ("i", "i + shift")
    text = kernel(
        f"const {ctype}* x, {ctype}* y, int shift",
        f"int i = threadIdx.x; y[{target}] = x[{source}];",
    )
    x, y = np.arange(32).astype(dtype), empty(32, dtype)
    if shift == 0:
        launch(text, [x, y, 0])
        assert (x == y).all()
        return
    side = {-1: "starting {} bytes before the start of", 1: "ending {} bytes past the end of"}[
        shift
    ].format(size)
    label = f"argument {int(access == 'writes')}, {dtype}[32]"
    with pytest.raises(EmulatorError, match="out of bounds") as error:
        launch(text, [x, y, shift])
    message = str(error.value)
    assert f"this thread {access} {size} bytes of global memory, {side} {label}" in message
    assert f"thread ({31 if shift > 0 else 0}, 0, 0)" in message
    assert (
        "block (0, 0, 0)" in message
        and "at kernel.cu:3" in message
        and "int i = threadIdx.x" in message
    )


def test_bounds_of_a_strided_argument_are_those_of_its_elements():
    x = np.arange(64, dtype="f4")
    text = kernel(
        "const float* x, float* y, int n",
        "for (int i = threadIdx.x; i < n; i += 32) y[i] = x[-2 * i];",
    )
    y = empty(32, "f4")
    launch(text, [x[62::-2], y, 32])
    assert (y == x[62::-2]).all()
    with pytest.raises(EmulatorError, match="starting 8 bytes before the start of argument 0"):
        launch(text, [x[62:0:-2], empty(32, "f4"), 32])


def test_null_pointer_accesses_are_reported():
    text = kernel("float* x", "x[threadIdx.x] = 0;")
    with pytest.raises(EmulatorError, match="null pointer"):
        launch(text, [None])


def test_empty_array_has_no_bytes():
    with pytest.raises(
        EmulatorError, match=r"past the end of argument 0, float32\[0\] \(0 bytes\)"
    ):
        launch(kernel("float* x", "x[0] = 0;"), [empty(0, "f4")])


def test_writes_to_read_only_arrays_are_reported():
    x = np.zeros(32, "f4")
    x.flags.writeable = False
    with pytest.raises(EmulatorError, match="read-only: this thread writes 4 bytes of argument 0"):
        launch(kernel("float* x", "x[threadIdx.x] = 1;"), [x])
    with pytest.raises(EmulatorError, match="read-only: this thread updates"):
        launch(kernel("float* x", "atomicAdd(&x[0], 1.0f);"), [x])


def test_an_unwritten_output_is_nan():
    y = empty(32, "f4")
    launch(kernel("float* y", "if (threadIdx.x != 7) y[threadIdx.x] = 0;"), [y])
    assert np.isnan(y).nonzero()[0].tolist() == [7]


def test_local_array_bounds():
    text = kernel(
        "float* y, int n",
        "float a[4]; for (int i = 0; i < n; ++i) a[i] = i; y[threadIdx.x] = a[threadIdx.x % n];",
    )
    launch(text, [empty(32, "f4"), 4])
    with pytest.raises(EmulatorError, match=r"index 4 of an array 'float \[4\]'"):
        launch(text, [empty(32, "f4"), 5])


def test_memcpy_is_checked():
    text = kernel("const float* x, float* y, int n", "if (threadIdx.x == 0) memcpy(y, x, n * 4);")
    x, y = np.arange(32, dtype="f4"), empty(32, "f4")
    launch(text, [x, y, 32])
    assert (x == y).all()
    with pytest.raises(
        EmulatorError,
        match="reads 132 bytes of global memory, ending 4 bytes past the end of argument 0",
    ):
        launch(text, [x, y, 33])


def test_misaligned_vector_accesses_are_reported():
    text = kernel(
        "const float* x, float4* y",
        "y[threadIdx.x] = *reinterpret_cast<const float4*>(x + 4 * threadIdx.x);",
    )
    x, y = empty(133, "f4"), empty((32, 4), "f4")
    x[:] = np.arange(133)
    launch(text, [x[4:132], y])
    assert (y.ravel() == x[4:132]).all()
    with pytest.raises(
        EmulatorError,
        match="misaligned: 'const struct float4' at address .* needs a multiple of 16",
    ):
        launch(text, [x[1:129], y])


def test_shared_memory_is_no_better_aligned_than_declared():
    body = """
    __shared__ {align} float x[128];
    for (int i = threadIdx.x; i < 128; i += 32) x[i] = i;
    __syncthreads();
    y[threadIdx.x] = reinterpret_cast<float4*>(x)[threadIdx.x];"""
    for align in ("__align__(16)", "alignas(16)", "alignas(sizeof(float4))"):
        y = empty((32, 4), "f4")
        launch(kernel("float4* y", body.format(align=align)), [y])
        assert (y.ravel() == np.arange(128)).all()
    with pytest.raises(EmulatorError, match="misaligned"):
        launch(kernel("float4* y", body.format(align="")), [empty((32, 4), "f4")])


# ---- shared memory ------------------------------------------------------------------------------

REDUCE = """
template <class A> __device__ A warp_sum(A v) {
  for (int m = 16; m > 0; m /= 2) v += __shfl_xor_sync(0xffffffffu, v, m);
  return v;
}
template <class A, int BLOCK> __device__ A block_sum(A v) {
  __shared__ A partial[BLOCK / 32];  // one per warp; the __shared__ memory is reused
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = warp_sum(v);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  v = warp_sum(lane < BLOCK / 32 ? partial[lane] : A(0));
  __syncthreads();
  return v;
}
extern "C" __global__ void __launch_bounds__(256) k(const float* x, float* y, int rows, int cols) {
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float total = 0;
    for (int c = threadIdx.x; c < cols; c += 256) total += x[(long long)row * cols + c];
    total = block_sum<float, 256>(total);
    if (threadIdx.x == 0) y[row] = total;
  }
}
"""


@pytest.mark.parametrize("cols", [1, 31, 256, 1000])
def test_block_reduction(cols):
    x, y = np.random.default_rng(cols).integers(0, 9, (7, cols)).astype("f4"), empty(7, "f4")
    launch(REDUCE, [x, y, 7, cols], grid=3, block=256)
    assert (y == x.sum(1)).all()


@pytest.mark.parametrize(
    "barrier, fault", [(0, "uninitialised shared memory|race"), (1, "shared memory race")]
)
@pytest.mark.parametrize("seed", range(5))
def test_block_reduction_needs_each_barrier(barrier, fault, seed):
    text = without(REDUCE, "__syncthreads();", barrier)
    with pytest.raises(EmulatorError, match=fault):
        launch(text, [np.ones((2, 256), "f4"), empty(2, "f4"), 2, 256], block=256, seed=seed)


TRANSPOSE = """
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float tile[32][33];
  for (int block = 0; block < n; block += 32) {
    for (int r = threadIdx.y; r < 32; r += blockDim.y) tile[r][threadIdx.x] = x[(blockIdx.x * 32 + r) * n + block + threadIdx.x];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += blockDim.y) y[(block + r) * n + blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x][r];
    __syncthreads();
  }
}
"""


def test_transposition_tile():
    x, y = np.arange(64 * 64, dtype="f4").reshape(64, 64), empty((64, 64), "f4")
    launch(TRANSPOSE, [x, y, 64], grid=2, block=(32, 8, 1))
    assert (y == x.T).all()
    for barrier in range(2):
        with pytest.raises(EmulatorError, match="shared memory race|uninitialised"):
            launch(
                without(TRANSPOSE, "__syncthreads();", barrier),
                [x, y, 64],
                grid=2,
                block=(32, 8, 1),
            )


def test_race_names_both_sides():
    text = kernel(
        "int* y",
        "__shared__ int s[32];\ns[threadIdx.x] = 1;\ny[threadIdx.x] = s[31 - threadIdx.x];",
    )
    with pytest.raises(EmulatorError) as error:
        launch(text.replace("\ny[", "\n__syncthreads(); s[0] = 1;\ny["), [empty(32, "i4")])
    message = str(error.value)
    assert "shared memory race: this thread writes byte 0 of s, which thread (" in message
    assert (
        "wrote at kernel.cu:5" in message
        and "at kernel.cu:5" in message
        and "__syncthreads(); s[0] = 1;" in message
    )


@pytest.mark.parametrize(
    "readers",
    ["threadIdx.x < 32", "threadIdx.x >= 32", "threadIdx.x == 5", "threadIdx.x % 32 == 0", "true"],
)
@pytest.mark.parametrize("writer", [0, 5, 40])
@pytest.mark.parametrize("seed", range(4))
def test_write_after_read_is_a_race(readers, writer, seed):
    body = f"""
    __shared__ int s;
    if (threadIdx.x == 0) s = 1;
    __syncthreads();
    int v = {readers} ? s : 0;
    __syncthreads();
    if (threadIdx.x == {writer}) s = v + 2;
    __syncthreads();
    y[threadIdx.x] = s + v;"""
    text = kernel("int* y", body)
    launch(text, [empty(64, "i4")], block=64, seed=seed)
    if (readers, writer) == ("threadIdx.x == 5", 5):
        return  # the only reader is the writer
    with pytest.raises(EmulatorError, match="shared memory race"):
        launch(without(text, "__syncthreads();", 1), [empty(64, "i4")], block=64, seed=seed)


@pytest.mark.parametrize("seed", range(8))
def test_syncwarp_does_not_hide_readers_in_other_warps(seed):
    body = """
    __shared__ int s;
    if (threadIdx.x == 0) s = 1;
    __syncthreads();
    int v = s;
    __syncwarp();
    if (threadIdx.x == 0) s = 2;
    __syncthreads();
    y[threadIdx.x] = s + v;"""
    launch(kernel("int* y", body), [empty(32, "i4")], block=32, seed=seed)
    with pytest.raises(EmulatorError, match="shared memory race"):
        launch(kernel("int* y", body), [empty(64, "i4")], block=64, seed=seed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("access", ["y[threadIdx.x] = s", "atomicAdd(&s, 1)"])
def test_accesses_by_the_writer_do_not_hide_a_race(access, seed):
    body = f"""
    __shared__ int s;
    if (threadIdx.x == 0) s = 1;
    __syncthreads();
    {access};
    if (threadIdx.x == 1) s = 2;"""
    with pytest.raises(EmulatorError, match="shared memory race"):
        launch(kernel("int* y", body), [empty(2, "i4")], block=2, seed=seed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("threads", [2, 33])
def test_atomics_do_not_hide_races_with_plain_accesses(threads, seed):
    text = kernel(
        "int* y",
        """
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, 1);
    __syncthreads( );
    y[threadIdx.x] = n;""",
    )
    for barrier in ("__syncthreads();", "__syncthreads( );"):
        with pytest.raises(EmulatorError, match="shared memory race|uninitialised"):
            launch(without(text, barrier), [empty(33, "i4")], block=threads, seed=seed)


def test_races_are_detected_per_byte():
    text = kernel(
        "char* y",
        "__shared__ char s[32]; s[threadIdx.x] = threadIdx.x;\n__syncthreads();\ny[threadIdx.x] = s[31 - threadIdx.x];",
    )
    y = empty(32, "i1")
    launch(text, [y])
    assert (y == np.arange(32)[::-1]).all()
    with pytest.raises(EmulatorError, match="race|uninitialised"):
        launch(without(text, "__syncthreads();"), [y])


WARP_SCAN = kernel(
    "int* y",
    """
  __shared__ int s[32];
  int lane = threadIdx.x;
  s[lane] = 1;
  __syncwarp();
  for (int d = 1; d < 32; d *= 2) {
    int v = lane >= d ? s[lane - d] : 0;
    __syncwarp( );
    s[lane] += v;
    __syncwarp(0xffffffff);
  }
  y[lane] = s[31 - lane];""",
)


def test_warp_synchronous_code_needs_each_syncwarp():
    y = empty(32, "i4")
    launch(WARP_SCAN, [y])
    assert (y == np.arange(32, 0, -1)).all()
    for barrier in ("__syncwarp();", "__syncwarp( );", "__syncwarp(0xffffffff);"):
        with pytest.raises(EmulatorError, match="shared memory race|uninitialised"):
            launch(without(WARP_SCAN, barrier), [y])


def test_syncwarp_orders_only_the_lanes_of_its_mask():
    text = kernel(
        "int* y, int partner",
        """__shared__ int s[32];
        s[threadIdx.x] = 1;
        __syncwarp(threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u);
        y[threadIdx.x] = s[threadIdx.x ^ partner];""",
    )
    launch(text, [empty(32, "i4"), 15])
    with pytest.raises(EmulatorError, match="race|uninitialised"):
        launch(text, [empty(32, "i4"), 16])


def test_shuffles_and_syncwarp_do_not_order_other_memory():
    for barrier in ("__shfl_sync(0xffffffffu, 1, 0);", "__ballot_sync(0xffffffffu, 1);"):
        text = kernel(
            "int* y",
            f"__shared__ int s[32]; s[threadIdx.x] = 1; {barrier} y[threadIdx.x] = s[31 - threadIdx.x];",
        )
        with pytest.raises(EmulatorError, match="race"):
            launch(text, [empty(32, "i4")])
    text = kernel(
        "int* y",
        "__shared__ int s[64]; s[threadIdx.x] = 1; __syncwarp(); y[threadIdx.x] = s[63 - threadIdx.x];",
    )
    with pytest.raises(EmulatorError, match="race|uninitialised"):
        launch(text, [empty(64, "i4")], block=64)


def test_reads_of_uninitialised_shared_memory_are_reported():
    text = kernel(
        "int* y",
        "__shared__ int s[33]; s[threadIdx.x] = 1; __syncthreads(); y[threadIdx.x] = s[threadIdx.x + 1];",
    )
    with pytest.raises(
        EmulatorError, match="uninitialised shared memory: this thread reads byte 128 of s"
    ):
        launch(text, [empty(32, "i4")])


def test_shared_memory_does_not_outlive_its_block():
    text = kernel(
        "int* y", "__shared__ int s; if (y[blockIdx.x]) s = 1; __syncthreads(); y[blockIdx.x] = s;"
    )
    with pytest.raises(EmulatorError, match="uninitialised"):
        launch(text, [np.array([1, 0, 0, 1], "i4")], block=1, grid=4)


@pytest.mark.parametrize(
    "index, side",
    [("-1", "starting 4 bytes before the start of"), ("n", "ending 4 bytes past the end of")],
)
def test_out_of_bounds_shared_accesses_are_reported(index, side):
    body = f"__shared__ int a[8]; __shared__ int s[32]; __shared__ int b[8]; a[0] = b[0] = 1; int* p = s; p[{index}] = 1;"
    with pytest.raises(
        EmulatorError, match=f"writes 4 bytes of shared memory, {side} s \\(128 bytes\\)"
    ):
        launch(kernel("int n", body), [32], block=1)


def test_dynamic_shared_memory():
    body = """
    extern __shared__ __align__(16) unsigned char bytes[];
    float* s = reinterpret_cast<float*>(bytes);
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = s[31 - threadIdx.x];"""
    y = empty(32, "f4")
    launch(kernel("float* y", body), [y], shared=128)
    assert (y == np.arange(32)[::-1]).all()
    with pytest.raises(
        EmulatorError, match=r"ending 4 bytes past the end of dynamic shared memory \(124 bytes\)"
    ):
        launch(kernel("float* y", body), [y], shared=124)
    with pytest.raises(EmulatorError, match="out of bounds"):
        launch(kernel("float* y", body), [y])
    with pytest.raises(EmulatorError, match="race|uninitialised"):
        launch(without(kernel("float* y", body), "__syncthreads();"), [y], shared=128)


def test_forms_of_shared_declarations():
    before = """
    template <class A, int N> struct Pair { A a[N]; };
    #define ROWS (2 + 2)
    template <class A> __device__ A first(A v) {
      __shared__ A s;  /* __shared__ in a comment; */
      if (threadIdx.x == 0) s = v;
      __syncthreads();
      return s;
    }"""
    body = """
    __shared__ Pair<float, 2> pairs[32];
    static __shared__ alignas(16) float m[ROWS][8], v[32];  // __shared__ "x
    __shared__
      unsigned char bytes
        [32];
    pairs[threadIdx.x].a[1] = m[threadIdx.x / 8][threadIdx.x % 8] = v[threadIdx.x] = bytes[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int i = 31 - threadIdx.x;
    y[threadIdx.x] = pairs[i].a[1] + m[i / 8][i % 8] + v[i] + bytes[i] + first(1.0f) + first(1.0) + sizeof(m) / sizeof(m[0]);"""
    y = empty(32, "f4")
    launch(kernel("float* y", body, before), [y])
    assert (y == 4 * np.arange(32)[::-1] + 6).all()


def test_shared_declarations_outside_functions():
    body = "s[threadIdx.x] = 1; __syncthreads(); y[threadIdx.x] = s[31 - threadIdx.x];"
    launch(kernel("int* y", body, "extern __shared__ int s[];"), [empty(32, "i4")], shared=128)
    with pytest.raises(EmulatorError, match="outside a function are not emulated"):
        compile(kernel("int* y", body, "struct S {};\n__shared__ int s[32];"))


def test_shared_memory_limits():
    text = kernel(
        "int* y", "__shared__ int s[N]; s[threadIdx.x] = 1; y[threadIdx.x] = s[threadIdx.x];"
    )
    launch("#define N 12288\n" + text, [empty(32, "i4")])
    with pytest.raises(EmulatorError, match="49156 bytes, CUDA allows 49152"):
        launch("#define N 12289\n" + text, [empty(32, "i4")])
    with pytest.raises(EmulatorError, match="232449 bytes of shared memory, CUDA allows 232448"):
        launch("#define N 1\n" + text, [empty(32, "i4")], shared=232449)


# ---- barriers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, fault",
    [
        (
            "if (threadIdx.x >= 40) return; __syncthreads();",
            "barrier divergence: 40 threads wait at __syncthreads, 24 have returned",
        ),
        (
            "if (threadIdx.x < 32) { __syncthreads(); }",
            "barrier divergence: 32 threads wait at __syncthreads, 32 have returned",
        ),
        (
            "if (threadIdx.x < 32) {\n __syncthreads();\n } else {\n __syncthreads();\n }",
            "barrier divergence: .* at the __syncthreads of kernel.cu:4",
        ),
        (
            "if (threadIdx.x < 32) __syncthreads(); else __syncthreads_or(1);",
            "barrier divergence: this thread waits at",
        ),
        (
            "if (threadIdx.x % 2) __syncwarp();\n else __syncthreads();",
            "deadlock: this thread waits for ever at __syncwarp.* waits at the __syncthreads of kernel.cu:4",
        ),
        (
            "if (threadIdx.x % 2) __syncwarp(); else __ballot_sync(~0u, 1);",
            "deadlock: this thread waits for ever at",
        ),
        ("volatile int* flag = y; while (*flag == 0) { }", "deadlock: this thread spins for ever"),
    ],
)
def test_divergent_barriers_are_reported(body, fault):
    with pytest.raises(EmulatorError, match=fault):
        launch(kernel("int* y", body), [np.zeros(64, "i4")], block=64)


def test_uniform_barriers_in_branches_and_loops():
    text = kernel(
        "int* y, int n",
        "for (int i = 0; i < n; ++i) { if (n > 2) __syncthreads(); else __syncthreads(); }\n y[threadIdx.x] = 1;",
    )
    for n in (0, 1, 2, 3):
        launch(text, [empty(64, "i4"), n], block=64)


def test_spinning_on_another_thread_of_the_block_makes_progress():
    text = kernel(
        "int* y", "volatile int* flag = y; if (threadIdx.x == 63) *flag = 1; while (*flag == 0) { }"
    )
    launch(text, [np.zeros(1, "i4")], block=64)


def test_barriers_with_a_predicate():
    body = """int odd = threadIdx.x % 2;
    y[0] = __syncthreads_count(odd); y[1] = __syncthreads_or(threadIdx.x == 3); y[2] = __syncthreads_or(0);
    y[3] = __syncthreads_and(1); y[4] = __syncthreads_and(odd);"""
    y = empty(5, "i4")
    launch(kernel("int* y", body), [y], block=64)
    assert y.tolist() == [32, 1, 0, 1, 0]


# Warps 1 and 2 hand numbers to warp 0 by barrier 3, and go on; warp 0 says by barrier 4 that it has read them.
HANDED = """
    __shared__ int s[96];
    int warp = threadIdx.x / 32;
    for (int round = 0; round < 3; ++round) {
      if (warp > 0) {
        s[threadIdx.x] = 100 * round + threadIdx.x;
        emulator_barrier_arrive(3, 96);
        emulator_barrier_sync(4, 96);
      } else {
        emulator_barrier_sync(3, 96);
        y[32 * round + threadIdx.x] = s[threadIdx.x + 32] + s[95 - threadIdx.x];
        emulator_barrier_arrive(4, 96);
      }
    }"""


@pytest.mark.parametrize("seed", range(4))
def test_named_barriers_order_what_warps_do(seed):
    y = empty(96, "i4")
    launch(kernel("int* y", HANDED), [y], block=96, seed=seed)
    assert y.tolist() == [200 * round_ + 127 for round_ in range(3) for _ in range(32)]


@pytest.mark.parametrize(
    "changed,to,fault",
    [
        ("emulator_barrier_sync(3, 96);", "", "shared memory|barrier 3: more than 96 threads have arrived"),
        ("emulator_barrier_sync(4, 96);", "", "shared memory race|more than 96 threads have arrived"),
        ("emulator_barrier_arrive(4, 96);", "", "waits for ever at barrier 3, where 32 of 96 threads have arrived"),
        ("emulator_barrier_arrive(3, 96);", "emulator_barrier_arrive(3, 64);", "barrier 3 is one of|for ever at barrier 3"),
        ("emulator_barrier_sync(4, 96);", "emulator_barrier_sync(16, 96);", "there is no barrier 16"),
    ],
)
def test_faults_of_named_barriers_are_reported(changed, to, fault):
    assert changed in HANDED
    for seed in range(4):
        with pytest.raises(EmulatorError, match=fault):
            launch(kernel("int* y", HANDED.replace(changed, to)), [empty(96, "i4")], block=96, seed=seed)


# ---- warps --------------------------------------------------------------------------------------


def test_shuffles():
    body = """int v = 100 + threadIdx.x; const unsigned all = 0xffffffffu;
    y += 8 * threadIdx.x;
    y[0] = __shfl_sync(all, v, 5); y[1] = __shfl_sync(all, v, 1, 8); y[2] = __shfl_up_sync(all, v, 3); y[3] = __shfl_down_sync(all, v, 3);
    y[4] = __shfl_down_sync(all, v, 1, 4); y[5] = __shfl_xor_sync(all, (double)v, 7); y[6] = __shfl_up_sync(all, (unsigned short)v, 1, 2);
    y[7] = __shfl_xor_sync(all, (long long)v, 4, 4);"""
    y, lane = empty((32, 8), "i4"), np.arange(32)
    launch(kernel("int* y", body), [y])
    down = np.where(lane % 4 == 3, lane, lane + 1)
    expected = [
        5 + 0 * lane,
        lane // 8 * 8 + 1,
        np.maximum(lane - 3, lane * (lane < 3)),
        np.where(lane > 28, lane, lane + 3),
        down,
        lane ^ 7,
        lane // 2 * 2,
    ]
    np.testing.assert_array_equal(y[:, :7], np.transpose(expected) + 100)
    np.testing.assert_array_equal(
        y[4:, 7],
        lane[4:] // 4 * 4 % 8 * 0 + np.where(lane[4:] % 8 < 4, lane[4:], lane[4:] ^ 4) + 100,
    )


def test_votes():
    body = """y[5] = __activemask(); int odd = threadIdx.x % 2; y[0] = __ballot_sync(~0u, odd); y[1] = __any_sync(~0u, odd); y[2] = __all_sync(~0u, odd);
    if (odd) { y[3] = __ballot_sync(0xaaaaaaaau, 1); y[4] = __all_sync(0xaaaaaaaau, odd); }"""
    y = empty(6, "u4")
    launch(kernel("unsigned* y", body), [y])
    assert y.tolist() == [0xAAAAAAAA, 1, 0, 0xAAAAAAAA, 1, 0xFFFFFFFF]


@pytest.mark.parametrize(
    "body, fault",
    [
        (
            "if (threadIdx.x >= 16) return; __shfl_xor_sync(0xffffffffu, 1, 16);",
            "__shfl_xor_sync reads lane .*, which has returned or does not exist",
        ),
        (
            "if (threadIdx.x < 16) __shfl_xor_sync(0x0000ffffu, 1, 16);",
            "__shfl_xor_sync reads lane .*, which is not in the mask",
        ),
        ("__shfl_sync(0x0000ffffu, 1, 0);", "the mask 0x0000ffff does not name the calling lane"),
        (
            "if (threadIdx.x < 16) __shfl_sync(0xffffffffu, 1, 0); else __shfl_down_sync(0xffffffffu, 1, 1);",
            "deadlock: .* waits for ever at",
        ),
        ("__shfl_sync(0xffffffffu, 1, 0, 12);", "width 12 is not a power of two"),
    ],
)
def test_invalid_shuffles_are_reported(body, fault):
    with pytest.raises(EmulatorError, match=fault):
        launch(kernel("int* y", body), [empty(32, "i4")])


def test_shuffles_in_a_partial_warp():
    text = kernel(
        "int* y",
        "int v = threadIdx.x; for (int m = 4; m; m /= 2) v += __shfl_xor_sync(0xffu, v, m); y[threadIdx.x] = v;",
    )
    y = empty(8, "i4")
    launch(text, [y], block=8)
    assert (y == 28).all()


# ---- atomics ------------------------------------------------------------------------------------


def test_atomics_across_blocks():
    body = """int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&count[0], 1); atomicSub(&count[1], 2); atomicMax(&count[2], i); atomicMin(&count[3], -i);
    atomicOr(&count[4], 1 << i % 31); atomicXor(&count[5], i); atomicAnd(&count[6], ~(i % 4)); atomicInc((unsigned*)&count[7], 6);
    for (int old = count[8], seen; (seen = atomicCAS(&count[8], old, old + 2)) != old;) old = seen;
    atomicAdd(total, 0.5); atomicAdd(big, 1ull << 33);"""
    count, total, big = np.array([0, 0, 0, 0, 0, 0, -1, 0, 0], "i4"), np.zeros(1), np.zeros(1, "u8")
    launch(
        kernel("int* count, double* total, unsigned long long* big", body),
        [count, total, big],
        grid=5,
        block=40,
    )
    xor = np.bitwise_xor.reduce(np.arange(200))
    assert count.tolist() == [200, -400, 199, -199, 2**31 - 1, xor, ~3, 200 % 7, 400]
    assert total[0] == 100 and big[0] == 200 << 33


def test_atomics_on_shared_memory_do_not_race_with_each_other():
    text = kernel(
        "int* y",
        "__shared__ int n; if (threadIdx.x == 0) n = 0; __syncthreads(); atomicAdd(&n, 1); __syncthreads( ); y[threadIdx.x] = n;",
    )
    y = empty(96, "i4")
    launch(text, [y], block=96)
    assert (y == 96).all()
    for barrier in ("__syncthreads();", "__syncthreads( );"):
        with pytest.raises(EmulatorError, match="race|uninitialised"):
            launch(without(text, barrier), [y], block=96)


LAST_BLOCK = """
extern "C" __global__ void k(const int* x, volatile int* partial, unsigned* done, int* y) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (int b = 0; b < gridDim.x; ++b) total += __ldcg((const int*)&partial[b]);
    *y = total;
  }
}
"""


def test_last_block_finishes():
    x, done, y = np.arange(50, dtype="i4"), np.zeros(1, "u4"), empty(1, "i4")
    for _ in range(3):
        launch(LAST_BLOCK, [x, empty(50, "i4"), done, y], grid=50)
        assert y[0] == x.sum() and done[0] == 0


# ---- order --------------------------------------------------------------------------------------

ORDER = kernel(
    "int* count, int* order", "order[atomicAdd(count, 1)] = blockIdx.x * blockDim.x + threadIdx.x;"
)


def orders(seed):
    order = empty((4, 96), "i4")
    launch(ORDER, [np.zeros(1, "i4"), order], grid=4, block=96, seed=seed)
    assert sorted(order.ravel()) == list(range(384))
    return order


def test_seed_determines_the_execution_order():
    first = orders(1)
    assert (first == orders(1)).all()
    others = [orders(seed) for seed in range(2, 12)]
    blocks, warps, lanes = (
        {str(of(order)) for order in others}
        for of in (lambda o: o[:, 0] // 96, lambda o: o[0, ::32] // 32, lambda o: o[0, :32] % 32)
    )
    assert min(map(len, (blocks, warps, lanes))) > 2


def test_seed_is_in_the_message_and_the_environment(monkeypatch):
    text = kernel("int* y", "y[32 - threadIdx.x] = 0;")
    with pytest.raises(EmulatorError, match="seed 41"):
        launch(text, [empty(32, "i4")], seed=41)
    monkeypatch.setenv("EMULATOR_SEED", "42")
    with pytest.raises(EmulatorError, match="seed 42"):
        launch(text, [empty(32, "i4")])


# ---- launches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grid, block, fault",
    [
        (0, 1, "grid is three sizes of at least 1"),
        (1, 0, "block is three sizes of at least 1"),
        ((1, 65536, 1), 1, "CUDA allows a grid of"),
        (1, 1025, "CUDA allows a block of"),
        (1, (1, 1, 65), "CUDA allows a block of"),
        (1, (32, 33, 1), "1056 threads in a block, the kernel allows 1024"),
    ],
)
def test_impossible_launches_are_reported(grid, block, fault):
    with pytest.raises(EmulatorError, match=fault):
        launch(kernel("", ""), [], grid=grid, block=block)


def test_launch_bounds():
    text = 'constexpr int B = 64;\nextern "C" __global__ void\n__launch_bounds__(B * (1 + 1), 2) k() {}\nextern "C" __global__ __launch_bounds__(B) void other() {}'
    launch(text, [], block=128)
    with pytest.raises(EmulatorError, match="the kernel allows 128"):
        launch(text, [], block=129)
    with pytest.raises(EmulatorError, match="the kernel allows 64"):
        launch(text, [], block=65, kernel="other")
    with pytest.raises(EmulatorError, match="absent: not in kernel.cu, which has k, other"):
        launch(text, [], kernel="absent")


def test_block_of_1024_threads():
    y = empty((4, 16, 16), "i4")
    launch(
        kernel(
            "int* y",
            "y[(threadIdx.z * 16 + threadIdx.y) * 16 + threadIdx.x] = threadIdx.z + blockDim.y; __syncthreads();",
        ),
        [y],
        block=(16, 16, 4),
    )
    assert (y == np.arange(4)[:, None, None] + 16).all()


def test_arguments_by_value():
    before = "struct Dims { long long size[12]; int rank; };"
    dims = np.arange(12, dtype="i8").tobytes() + np.array([3, 0], "i4").tobytes()
    text = kernel(
        "double* y, Dims dims, int n, float f, double d, const int* none, bool b",
        "y[0] = dims.size[11] * dims.rank + n + f + d + (none == nullptr) + b;",
        before,
    )
    y = empty(1, "f8")
    launch(text, [y, dims, -7, np.float32(0.5), 0.25, None, True], block=1)
    assert y[0] == 33 - 7 + 0.75 + 2


@pytest.mark.parametrize(
    "args, fault",
    [
        (
            [1.0, 1, b"12345678"],
            r"argument 0: got a float of 8 bytes, the kernel takes a float of 4 bytes",
        ),
        ([np.float32(1), 2**40, b"12345678"], "argument 1: 1099511627776 does not fit"),
        (
            [np.float32(1), 1, b"1234"],
            "argument 2: got a struct of 4 bytes, the kernel takes a struct of 8 bytes",
        ),
        ([np.float32(1), 1], "got 2 arguments, the kernel takes 3"),
        ([1, 1, b"12345678"], "argument 0: got an integer"),
    ],
)
def test_mismatched_arguments_are_reported(args, fault):
    with pytest.raises(EmulatorError, match=fault):
        launch(kernel("float a, int b, float2 c", ""), args)


def test_compiler_errors_name_the_line():
    with pytest.raises(
        EmulatorError, match="(?s)bad.cu does not compile.*where.cuh:12:.*undeclared_name"
    ):
        compile('#line 12 "where.cuh"\n__device__ int f() { return undeclared_name; }', "bad.cu")


def test_oversized_local_arrays_do_not_compile():
    with pytest.raises(EmulatorError, match="frame size of .* is larger than 65536"):
        compile(
            kernel(
                "int* y, int n",
                "int a[40000]; for (int i = 0; i < n; ++i) a[i] = i; y[0] = a[n / 2];",
            )
        )


def test_undefined_functions_are_reported():
    with pytest.raises(EmulatorError, match="does not link.*nowhere"):
        compile(
            'extern "C" int nowhere();\nextern "C" __global__ void k(int* y) { y[0] = nowhere(); }'
        )


def test_device_only_code_is_excluded():
    y = empty(1, "i4")
    launch(
        kernel("int* y", '#ifdef __CUDA_ARCH__\nasm("nonsense");\n#else\n*y = 1;\n#endif'),
        [y],
        block=1,
    )
    assert y[0] == 1


def test_undefined_arithmetic_is_reported():
    text = kernel("int* y, int n", "y[0] = 1 << n; y[1] = 7 / n;")
    launch(text, [empty(2, "i4"), 5])
    with pytest.raises(EmulatorError, match="division by zero"):
        launch(text, [empty(2, "i4"), 0])
    with pytest.raises(EmulatorError, match="shift of 'int' by 32 bits"):
        launch(text, [empty(2, "i4"), 32])


def test_constants_and_bits():
    before = (
        "__constant__ int table[4] = {3, 1, 4, 1}; __device__ const float weights[] = {0.5f, 2.0f};"
    )
    body = """y[0] = table[n] + weights[n - 1]; y[1] = __popc(0xf0u) + __clz(1) + __ffs(8) + __clzll(1) + __popcll(7);
    y[2] = __umulhi(1u << 31, 4u) + __mul64hi(-1ll, 1ll) + __umul64hi(1ull << 63, 6ull) + (__brev(1u) >> 31);
    y[3] = __int_as_float(__float_as_int(1.5f)) + __longlong_as_double(__double_as_longlong(0.25));
    y[4] = fmaxf(__int_as_float(0x7fc00000), 2) + max(1, 3) + min(2.5f, 1.0) + max(1ull, 2ull) + abs(-4) + fabs(-1.0f) + rsqrt(4.0f) + isnan(0.0f / y[5]);"""
    y = np.zeros(6)
    launch(kernel("double* y, int n", body, before), [y, 2], block=1)
    assert y[:4].tolist() == [6, 4 + 31 + 4 + 63 + 3, 2 - 1 + 3 + 1, 1.75]
    assert y[4] == 2 + 3 + 1 + 2 + 4 + 1 + 0.5 + 1


# ---- elementwise kernels ------------------------------------------------------------------------

BASE = np.arange(24.0).reshape(4, 6)
LAYOUTS = {
    "C order": BASE,
    "F order": np.asfortranarray(BASE),
    "sliced": BASE[1:, ::2],
    "negative stride": BASE[::-1, ::-3],
    "broadcast": np.broadcast_to(BASE[0], (3, 6)),
    "0-d": BASE[0, 0, ...],
    "empty": BASE[:0],
}
AXPY = ElementwiseKernel(
    "raw T x, raw U y, int64 n0, float64 a",
    "raw T z",
    "z[i] = a * x[i] + y[i % n0] + (x.size() - z.size())",
    "axpy",
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elementwise_layouts(layout):
    x = LAYOUTS[layout]
    z = empty(x.shape, x.dtype)
    assert AXPY(x, np.ones(3, "f4"), 3, 2.0, z, size=x.size) is z
    np.testing.assert_array_equal(z, 2 * x + 1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elementwise_dtypes(dtype):
    copy = ElementwiseKernel(
        "raw T x, bool flip",
        "raw T z",
        "z[i] = first(&x[0], flip ? n_ - 1 - i : i)",
        "copy",
        preamble=FIRST,
    )
    x = np.arange(300).astype(dtype)
    z = empty(300, dtype)
    copy(x, True, z[::-1], size=300)
    assert (z == x).all()


FIRST = "constexpr int n_ = 300;\ntemplate <class T> __device__ T first(const T* x, long long i) { return x[i]; }"


def test_elementwise_faults():
    x = np.ones(10)
    shift = ElementwiseKernel("raw T x", "raw T z", "z[i] = x.data()[i + 1]", "shift")
    with pytest.raises(
        EmulatorError, match=r"shift: out of bounds: .* past the end of x, float64\[10\]"
    ):
        shift(x, empty(10, "f8"), size=10)
    with pytest.raises(TypeError, match="T is float64 and, for z, float32"):
        shift(x, empty(10, "f4"), size=10)
    with pytest.raises(EmulatorError, match="assignment of read-only"):
        ElementwiseKernel("raw T x", "raw T z", "x[i] = 1", "backwards")(
            x, empty(10, "f8"), size=10
        )
