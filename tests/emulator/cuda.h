// The part of CUDA C++ that kernels use, for g++. It comes before the text of every kernel, so it
// includes nothing: parsing <cmath> alone would take longer than compiling most kernels.
#pragma once

#define __global__ __attribute__((noinline, visibility("default")))
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// Inlined even at -O1, so that an address inside one also names the line of the kernel.
#define EMULATOR_API inline __attribute__((always_inline))

using size_t = __SIZE_TYPE__;
using ptrdiff_t = __PTRDIFF_TYPE__;

// ---- vector types -------------------------------------------------------------------------------
#define EMULATOR_VECTOR(T, name)                                                     \
  struct name##1 { T x; };                                                           \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                 \
  struct name##3 { T x, y, z; };                                                     \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
  inline name##1 make_##name##1(T x) { return {x}; }                                 \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                         \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                 \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATOR_VECTOR(signed char, char)
EMULATOR_VECTOR(unsigned char, uchar)
EMULATOR_VECTOR(short, short)
EMULATOR_VECTOR(unsigned short, ushort)
EMULATOR_VECTOR(int, int)
EMULATOR_VECTOR(unsigned, uint)
EMULATOR_VECTOR(long long, longlong)
EMULATOR_VECTOR(unsigned long long, ulonglong)
EMULATOR_VECTOR(float, float)
EMULATOR_VECTOR(double, double)
#undef EMULATOR_VECTOR

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// const: a thread never sees them change, and g++ does not instrument reads of constants.
extern "C" const uint3 threadIdx, blockIdx;
extern "C" const dim3 blockDim, gridDim;
constexpr int warpSize = 32;

// ---- the runtime --------------------------------------------------------------------------------
struct emulator_shared_slot {
  const char* name;
  size_t size, align, launch;
  void* data;
};

extern "C" {
void* emulator_shared(emulator_shared_slot*);
extern unsigned char emulator_arena[];
int emulator_block_barrier(int op, int predicate, const char* file, int line);
unsigned long long emulator_warp(int op, unsigned mask, unsigned long long value, int operand, int width);
unsigned emulator_active_mask();
int emulator_atomic_int(int op, void*, int value, int compare);
unsigned emulator_atomic_uint(int op, void*, unsigned value, unsigned compare);
long long emulator_atomic_llong(int op, void*, long long value, long long compare);
unsigned long long emulator_atomic_ullong(int op, void*, unsigned long long value,
                                          unsigned long long compare);
float emulator_atomic_float(int op, void*, float value, float compare);
double emulator_atomic_double(int op, void*, double value, double compare);
void* memcpy(void*, const void*, size_t) noexcept;
void* memmove(void*, const void*, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
}

// Where memory.h puts it. A constant address: the declaration may stand outside functions.
#define emulator_dynamic_shared (emulator_arena + 256)

// ---- barriers -----------------------------------------------------------------------------------
// The orders of these lists are those of the names in runtime.cpp.
enum { emulator_sync, emulator_sync_count, emulator_sync_and, emulator_sync_or };
enum {
  emulator_syncwarp,
  emulator_shfl,
  emulator_up,
  emulator_down,
  emulator_xor,
  emulator_ballot,
  emulator_any,
  emulator_all,
  emulator_arrive,
  emulator_wait
};
enum {
  emulator_add,
  emulator_sub,
  emulator_max,
  emulator_min,
  emulator_and,
  emulator_or,
  emulator_exclusive_or,
  emulator_exch,
  emulator_cas,
  emulator_inc,
  emulator_dec
};

// By line and not by address: the optimiser may copy one barrier into two branches.
#define __syncthreads() ((void)emulator_block_barrier(emulator_sync, 0, __FILE__, __LINE__))
#define __syncthreads_count(predicate) \
  emulator_block_barrier(emulator_sync_count, (predicate) != 0, __FILE__, __LINE__)
#define __syncthreads_and(predicate) \
  emulator_block_barrier(emulator_sync_and, (predicate) != 0, __FILE__, __LINE__)
#define __syncthreads_or(predicate) \
  emulator_block_barrier(emulator_sync_or, (predicate) != 0, __FILE__, __LINE__)

EMULATOR_API void __syncwarp(unsigned mask = 0xffffffffu) {
  emulator_warp(emulator_syncwarp, mask, 0, 0, 32);
}
EMULATOR_API unsigned __ballot_sync(unsigned mask, int predicate) {
  return emulator_warp(emulator_ballot, mask, predicate != 0, 0, 32);
}
EMULATOR_API int __any_sync(unsigned mask, int predicate) {
  return emulator_warp(emulator_any, mask, predicate != 0, 0, 32);
}
EMULATOR_API int __all_sync(unsigned mask, int predicate) {
  return emulator_warp(emulator_all, mask, predicate != 0, 0, 32);
}
// PTX's barrier.arrive and barrier.sync, for which CUDA has no functions.
EMULATOR_API void emulator_barrier_arrive(int barrier, int threads) {
  emulator_warp(emulator_arrive, 0xffffffffu, barrier, threads, 32);
}
EMULATOR_API void emulator_barrier_sync(int barrier, int threads) {
  emulator_warp(emulator_wait, 0xffffffffu, barrier, threads, 32);
}
EMULATOR_API unsigned __activemask() { return emulator_active_mask(); }

template <class T>
EMULATOR_API T emulator_shuffle(int op, unsigned mask, T value, int operand, int width) {
  static_assert(!__is_class(T) && sizeof(T) <= 8, "CUDA shuffles scalars of at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = emulator_warp(op, mask, bits, operand, width);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
EMULATOR_API T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return emulator_shuffle(emulator_shfl, mask, value, lane, width);
}
template <class T>
EMULATOR_API T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return emulator_shuffle(emulator_up, mask, value, delta, width);
}
template <class T>
EMULATOR_API T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return emulator_shuffle(emulator_down, mask, value, delta, width);
}
template <class T>
EMULATOR_API T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  return emulator_shuffle(emulator_xor, mask, value, bits, width);
}

EMULATOR_API void __threadfence() { asm volatile("" ::: "memory"); }
EMULATOR_API void __threadfence_block() { asm volatile("" ::: "memory"); }
EMULATOR_API void __threadfence_system() { asm volatile("" ::: "memory"); }

// ---- atomics and cached accesses ----------------------------------------------------------------
#define EMULATOR_ATOMIC(name, op, T, kind) \
  EMULATOR_API T name(T* p, T v) { return emulator_atomic_##kind(op, p, v, 0); }
#define EMULATOR_ATOMIC_INTEGER(T, kind)            \
  EMULATOR_ATOMIC(atomicMax, emulator_max, T, kind) \
  EMULATOR_ATOMIC(atomicMin, emulator_min, T, kind) \
  EMULATOR_ATOMIC(atomicAnd, emulator_and, T, kind) \
  EMULATOR_ATOMIC(atomicOr, emulator_or, T, kind)   \
  EMULATOR_ATOMIC(atomicXor, emulator_exclusive_or, T, kind)
EMULATOR_ATOMIC_INTEGER(int, int)
EMULATOR_ATOMIC_INTEGER(unsigned, uint)
EMULATOR_ATOMIC_INTEGER(long long, llong)
EMULATOR_ATOMIC_INTEGER(unsigned long long, ullong)
EMULATOR_ATOMIC(atomicAdd, emulator_add, int, int)
EMULATOR_ATOMIC(atomicAdd, emulator_add, unsigned, uint)
EMULATOR_ATOMIC(atomicAdd, emulator_add, unsigned long long, ullong)
EMULATOR_ATOMIC(atomicAdd, emulator_add, float, float)
EMULATOR_ATOMIC(atomicAdd, emulator_add, double, double)
EMULATOR_ATOMIC(atomicSub, emulator_sub, int, int)
EMULATOR_ATOMIC(atomicSub, emulator_sub, unsigned, uint)
EMULATOR_ATOMIC(atomicExch, emulator_exch, int, int)
EMULATOR_ATOMIC(atomicExch, emulator_exch, unsigned, uint)
EMULATOR_ATOMIC(atomicExch, emulator_exch, unsigned long long, ullong)
EMULATOR_ATOMIC(atomicExch, emulator_exch, float, float)
EMULATOR_ATOMIC(atomicInc, emulator_inc, unsigned, uint)
EMULATOR_ATOMIC(atomicDec, emulator_dec, unsigned, uint)
#undef EMULATOR_ATOMIC_INTEGER
#undef EMULATOR_ATOMIC
EMULATOR_API int atomicCAS(int* p, int compare, int v) {
  return emulator_atomic_int(emulator_cas, p, v, compare);
}
EMULATOR_API unsigned atomicCAS(unsigned* p, unsigned compare, unsigned v) {
  return emulator_atomic_uint(emulator_cas, p, v, compare);
}
EMULATOR_API unsigned long long atomicCAS(unsigned long long* p, unsigned long long compare,
                                          unsigned long long v) {
  return emulator_atomic_ullong(emulator_cas, p, v, compare);
}

template <class T>
EMULATOR_API T __ldg(const T* p) {
  return *p;
}
template <class T>
EMULATOR_API T __ldcg(const T* p) {
  return *p;
}
template <class T>
EMULATOR_API T __ldcs(const T* p) {
  return *p;
}
template <class T>
EMULATOR_API T __ldca(const T* p) {
  return *p;
}
template <class T>
EMULATOR_API void __stcg(T* p, T v) {
  *p = v;
}
template <class T>
EMULATOR_API void __stcs(T* p, T v) {
  *p = v;
}

// ---- mathematics --------------------------------------------------------------------------------
#define EMULATOR_UNARY(name)                \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  inline float name(float x) { return name##f(x); }
EMULATOR_UNARY(exp)
EMULATOR_UNARY(exp2) EMULATOR_UNARY(expm1) EMULATOR_UNARY(log) EMULATOR_UNARY(log2) EMULATOR_UNARY(log10)
    EMULATOR_UNARY(log1p) EMULATOR_UNARY(sqrt) EMULATOR_UNARY(cbrt) EMULATOR_UNARY(fabs) EMULATOR_UNARY(floor)
        EMULATOR_UNARY(ceil) EMULATOR_UNARY(trunc) EMULATOR_UNARY(rint) EMULATOR_UNARY(round)
            EMULATOR_UNARY(sin) EMULATOR_UNARY(cos) EMULATOR_UNARY(tan) EMULATOR_UNARY(sinh)
                EMULATOR_UNARY(cosh) EMULATOR_UNARY(tanh) EMULATOR_UNARY(erf)
#undef EMULATOR_UNARY
#define EMULATOR_BINARY(name)                      \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept; \
  inline float name(float x, float y) { return name##f(x, y); }
                EMULATOR_BINARY(fmax) EMULATOR_BINARY(fmin) EMULATOR_BINARY(fmod) EMULATOR_BINARY(pow)
                    EMULATOR_BINARY(copysign) EMULATOR_BINARY(hypot) EMULATOR_BINARY(atan2)
#undef EMULATOR_BINARY
                        extern "C" double fma(double, double, double) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

inline bool isnan(float x) { return x != x; }
inline bool isnan(double x) { return x != x; }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }

extern "C" int abs(int) noexcept;
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }

// As in CUDA, a mixed pair becomes unsigned or double, and a NaN loses against a number.
#define EMULATOR_MIN_MAX(A, B, R) \
  inline R min(A a, B b) {        \
    R x = a, y = b;               \
    return y < x ? y : x;         \
  }                               \
  inline R max(A a, B b) {        \
    R x = a, y = b;               \
    return x < y ? y : x;         \
  }
#define EMULATOR_MIN_MAX_SIGNS(T)             \
  EMULATOR_MIN_MAX(T, T, T)                   \
  EMULATOR_MIN_MAX(T, unsigned T, unsigned T) \
  EMULATOR_MIN_MAX(unsigned T, T, unsigned T) \
  EMULATOR_MIN_MAX(unsigned T, unsigned T, unsigned T)
EMULATOR_MIN_MAX_SIGNS(int)
EMULATOR_MIN_MAX_SIGNS(long)
EMULATOR_MIN_MAX_SIGNS(long long)
#undef EMULATOR_MIN_MAX_SIGNS
#undef EMULATOR_MIN_MAX
#define EMULATOR_MIN_MAX(A, B, R)                     \
  inline R min(A a, B b) { return fmin(R(a), R(b)); } \
  inline R max(A a, B b) { return fmax(R(a), R(b)); }
EMULATOR_MIN_MAX(float, float, float)
EMULATOR_MIN_MAX(float, double, double)
EMULATOR_MIN_MAX(double, float, double)
EMULATOR_MIN_MAX(double, double, double)
#undef EMULATOR_MIN_MAX

// ---- bits ---------------------------------------------------------------------------------------
template <class To, class From>
inline To emulator_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
inline float __int_as_float(int x) { return emulator_bits<float>(x); }
inline int __float_as_int(float x) { return emulator_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emulator_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulator_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return emulator_bits<double>(x); }
inline long long __double_as_longlong(double x) { return emulator_bits<long long>(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned long long)x * y >> 32; }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) out |= unsigned(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return out;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline int __dp4a(int x, int y, int sum) {
  for (int i = 0; i < 32; i += 8) sum += (signed char)(x >> i) * (signed char)(y >> i);
  return sum;
}
inline unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
  for (int i = 0; i < 32; i += 8) sum += (x >> i & 0xff) * (y >> i & 0xff);
  return sum;
}
inline int __dp2a_lo(int x, int y, int sum) { return sum + (short)x * (signed char)y + (x >> 16) * (signed char)(y >> 8); }
inline unsigned __dp2a_lo(unsigned x, unsigned y, unsigned sum) {
  return sum + (x & 0xffff) * (y & 0xff) + (x >> 16) * (y >> 8 & 0xff);
}
#define EMULATOR_PAIRS(name, T, op)                        \
  inline unsigned name(unsigned x, unsigned y) {           \
    T low = (T)x op(T) y ? (T)x : (T)y;                    \
    T high = (T)(x >> 16) op(T)(y >> 16) ? (T)(x >> 16) : (T)(y >> 16); \
    return (unsigned)(unsigned short)high << 16 | (unsigned short)low; \
  }
EMULATOR_PAIRS(__vmaxs2, short, >)
EMULATOR_PAIRS(__vmins2, short, <)
EMULATOR_PAIRS(__vmaxu2, unsigned short, >)
EMULATOR_PAIRS(__vminu2, unsigned short, <)
#undef EMULATOR_PAIRS
inline int __mulhi(int x, int y) { return (long long)x * y >> 32; }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned __int128)x * y >> 64;
}
inline long long __mul64hi(long long x, long long y) { return (__int128)x * y >> 64; }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned __brev(unsigned x) {
  x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  return __builtin_bswap32(x);
}

// ---- launchers ----------------------------------------------------------------------------------
// What Python has to put in the place of a parameter: p(ointer), i(nteger), f(loat) or s(truct).
struct emulator_parameter {
  char kind;
  unsigned size, align;
};
template <class T>
constexpr char emulator_kind = __is_enum(T) ? 'i' : 's';
template <class T>
constexpr char emulator_kind<T*> = 'p';
#define EMULATOR_KIND(T, kind) \
  template <>                  \
  constexpr char emulator_kind<T> = kind;
EMULATOR_KIND(bool, 'i')
EMULATOR_KIND(char, 'i') EMULATOR_KIND(signed char, 'i') EMULATOR_KIND(unsigned char, 'i')
    EMULATOR_KIND(short, 'i') EMULATOR_KIND(unsigned short, 'i') EMULATOR_KIND(int, 'i')
        EMULATOR_KIND(unsigned, 'i') EMULATOR_KIND(long, 'i') EMULATOR_KIND(unsigned long, 'i')
            EMULATOR_KIND(long long, 'i') EMULATOR_KIND(unsigned long long, 'i') EMULATOR_KIND(float, 'f')
                EMULATOR_KIND(double, 'f')
#undef EMULATOR_KIND

                    template <unsigned... I>
                    struct emulator_indices {
};
template <auto kernel>
struct emulator_launcher;
template <class... P, void (*kernel)(P...)>
struct emulator_launcher<kernel> {
  static constexpr emulator_parameter signature[] = {{emulator_kind<P>, sizeof(P), alignof(P)}..., {0, 0, 0}};
  template <unsigned... I>
  __attribute__((no_sanitize("thread", "undefined"))) static void run(void** argv, emulator_indices<I...>) {
    kernel(*static_cast<P*>(argv[I])...);
  }
  static void call(void** argv) { run(argv, emulator_indices<__integer_pack(sizeof...(P))...>()); }
};
#define EMULATOR_KERNEL(kernel, threads)                                                              \
  extern "C" __attribute__((visibility("default"))) const struct {                                    \
    void (*call)(void**);                                                                             \
    const emulator_parameter* signature;                                                              \
    unsigned max_threads;                                                                             \
  } emulator_entry_##kernel = {emulator_launcher<kernel>::call, emulator_launcher<kernel>::signature, \
                               threads};
