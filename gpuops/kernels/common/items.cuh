// Items<T, N>: N elements in registers. Elements of one or two bytes stay packed in 32-bit words: unpacked all at once,
// they would take too many registers.
namespace gpuops {

template <class T, int N> constexpr bool WORDY = sizeof(T) < 4 && sizeof(T) * N % 4 == 0;

template <class T, int N, bool = WORDY<T, N>> struct Items {
  using Loaded = Pack<T, N>;
  T item[N];
  __device__ __forceinline__ T get(int v) const { return item[v]; }
  __device__ __forceinline__ void set(int v, T value) { item[v] = value; }
  __device__ __forceinline__ void fill(T value) {
#pragma unroll
    for (int v = 0; v < N; ++v) item[v] = value;
  }
  // Items from `begin` on become those of `other`.
  __device__ __forceinline__ void merge(const Items& other, int begin) {
#pragma unroll
    for (int v = 0; v < N; ++v) item[v] = v < begin ? item[v] : other.item[v];
  }
};

template <class T, int N> struct Items<T, N, true> {
  static constexpr int WORDS = sizeof(T) * N / 4, IN_WORD = 4 / sizeof(T), BITS = 8 * sizeof(T);
  using Loaded = Pack<u32, WORDS>;
  u32 word[WORDS];
  __device__ __forceinline__ T get(int v) const {
    u32 bits = word[v / IN_WORD] >> v % IN_WORD * BITS;
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  __device__ __forceinline__ void set(int v, T value) {
    u32 bits = 0, shift = v % IN_WORD * BITS;
    memcpy(&bits, &value, sizeof value);
    u32 others = v % IN_WORD ? word[v / IN_WORD] & ((1u << shift) - 1) : 0;  // set in order: items above v are cleared
    word[v / IN_WORD] = others | bits << shift;
  }
  __device__ __forceinline__ void fill(T value) {
    u32 bits = 0;
    memcpy(&bits, &value, sizeof value);
#pragma unroll
    for (int w = 0; w < WORDS; ++w) word[w] = bits * (IN_WORD == 4 ? 0x01010101u : 0x00010001u);
  }
  __device__ __forceinline__ void merge(const Items& other, int begin) {
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
      int kept = begin * BITS - 32 * w;
      u32 mask = kept >= 32 ? ~0u : kept <= 0 ? 0u : (1u << kept) - 1;
      word[w] = (word[w] & mask) | (other.word[w] & ~mask);
    }
  }
};

// An operand of indices, which is not in memory: the address of an element is its value.
struct Position { u8 here; };
template <int N> constexpr bool WORDY<Position, N> = false;
template <int N> struct Items<Position, N, false> {
  i64 first, step;
  __device__ __forceinline__ i64 get(int v) const { return first + v * step; }
};

// ---- two elements of 16 bits in a word

// Elementwise maximum (GREATER) or minimum of two pairs of 16-bit numbers. NaN propagates or, with NUMBERS, is ignored.
template <class T, bool GREATER, bool NUMBERS = false> __device__ __forceinline__ u32 extreme(u32 a, u32 b) {
  if constexpr (HALF<T>) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (NUMBERS && SAME<T, f16> && GREATER) asm("max.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    else if constexpr (NUMBERS && SAME<T, f16>) asm("min.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    else if constexpr (NUMBERS && GREATER) asm("max.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    else if constexpr (NUMBERS) asm("min.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    else if constexpr (SAME<T, f16> && GREATER) asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    else if constexpr (SAME<T, f16>) asm("min.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    else if constexpr (GREATER) asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    else asm("min.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
#else
    Items<T, 2> x = bit_cast<Items<T, 2>>(a), y = bit_cast<Items<T, 2>>(b), out;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      float p = widen(x.get(v)), q = widen(y.get(v));
      float other = NUMBERS && p != p ? q : NUMBERS && q != q ? p : GREATER ? greater_of(p, q) : lesser_of(p, q);
      out.set(v, convert<T>(other));
    }
    return out.word[0];
#endif
  } else if constexpr (SIGNED<T>) {
    return GREATER ? __vmaxs2(a, b) : __vmins2(a, b);
  } else {
    return GREATER ? __vmaxu2(a, b) : __vminu2(a, b);
  }
}

// For each of two 16-bit numbers of a: 0xffff if it is greater (GREATER) or less than that of b, else 0.
template <class T, bool GREATER> __device__ __forceinline__ u32 beyond(u32 a, u32 b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  u32 out;
  if constexpr (SAME<T, f16> && GREATER) asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  else if constexpr (SAME<T, f16>) asm("set.lt.u32.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  else if constexpr (GREATER) asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  else asm("set.lt.u32.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
#else
  Items<T, 2> x = bit_cast<Items<T, 2>>(GREATER ? a : b), y = bit_cast<Items<T, 2>>(GREATER ? b : a);
  return (widen(x.get(0)) > widen(y.get(0)) ? 0xffffu : 0u) | (widen(x.get(1)) > widen(y.get(1)) ? 0xffff0000u : 0u);
#endif
}
// For each of two 16-bit numbers: 0xffff if it is equal to that of b, else 0.
template <class T> __device__ __forceinline__ u32 equal_pair(u32 a, u32 b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  u32 out;
  if constexpr (SAME<T, f16>) asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  else asm("set.eq.u32.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
#else
  Items<T, 2> x = bit_cast<Items<T, 2>>(a), y = bit_cast<Items<T, 2>>(b);
  return (widen(x.get(0)) == widen(y.get(0)) ? 0xffffu : 0u) | (widen(x.get(1)) == widen(y.get(1)) ? 0xffff0000u : 0u);
#endif
}
// For each of two 16-bit numbers: 0xffff if it is NaN, else 0.
template <class T> __device__ __forceinline__ u32 unordered_pair(u32 a) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  u32 out;
  if constexpr (SAME<T, f16>) asm("set.nan.u32.f16x2 %0, %1, %1;" : "=r"(out) : "r"(a));
  else asm("set.nan.u32.bf16x2 %0, %1, %1;" : "=r"(out) : "r"(a));
  return out;
#else
  constexpr u32 INFINITE = SAME<T, f16> ? 0x7c00 : 0x7f80;
  return ((a & 0x7fff) > INFINITE ? 0xffffu : 0u) | ((a >> 16 & 0x7fff) > INFINITE ? 0xffff0000u : 0u);
#endif
}

// true_bytes: 1 for each nonzero byte, else 0. filled: 0xff for each nonzero byte, else 0.
__device__ __forceinline__ u32 true_bytes(u32 bytes) {
  return ((((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bytes) & 0x80808080u) >> 7;
}
__device__ __forceinline__ u32 filled(u32 bytes) { return true_bytes(bytes) * 255; }
// Normalises bools to 0 and 1, a word at a time. Testing each of them is then free.
template <class T, bool> struct Clean { using type = T; };
template <> struct Clean<b8, true> { using type = bool; };
template <class T, int N> using clean_t = typename Clean<T, WORDY<T, N>>::type;
template <int N, class T> __device__ __forceinline__ Items<clean_t<T, N>, N> cleaned(Items<T, N> items) {
  if constexpr (SAME<T, b8> && WORDY<T, N>) {
#pragma unroll
    for (int w = 0; w < N / 4; ++w) items.word[w] = true_bytes(items.word[w]);
    return bit_cast<Items<bool, N>>(items);
  } else {
    return items;
  }
}
// Widens two bytes of a `filled` word to 16 bits each: the lower two for even w, the upper two for odd w.
__device__ __forceinline__ u32 pair_filled(u32 bytes, int w) { return __byte_perm(bytes, 0, w % 2 ? 0x3322 : 0x1100); }

// Two floats rounded to the 16-bit type T, packed in a word.
template <class T> __device__ __forceinline__ u32 pair_of(float low, float high) {
  u32 word;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (SAME<T, f16>) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#else
  word = convert<T>(low).bits | static_cast<u32>(convert<T>(high).bits) << 16;
#endif
  return word;
}

template <int N, class T> __device__ __forceinline__ Items<T, N> load_items(const T* from) {
  return bit_cast<Items<T, N>>(*reinterpret_cast<const typename Items<T, N>::Loaded*>(from));
}

// How many elements lie before an address.
template <class T> __device__ __forceinline__ u64 index_of(const T* from) { return reinterpret_cast<u64>(from) / sizeof(T); }

template <class T> __device__ __forceinline__ T element(const T* from) { return *from; }
__device__ __forceinline__ i64 element(const Position* from) { return reinterpret_cast<i64>(from); }
// Indices of neighbours are `step` apart.
template <int N, class T> __device__ __forceinline__ Items<T, N> load_items(const T* from, i64) { return load_items<N>(from); }
template <int N> __device__ __forceinline__ Items<Position, N> load_items(const Position* from, i64 step = 1) {
  return {element(from), step};
}

// Computes a value now, and not once more where it is used: a parameter, when everything waits for the result, or a place
// in each step of a loop.
template <class T> __device__ __forceinline__ void early(T& value) {
#ifdef __CUDA_ARCH__
  if constexpr (SAME<T, double>) asm volatile("" : "+d"(value));
  else if constexpr (sizeof(T) == 8) asm volatile("" : "+l"(value));
  else asm volatile("" : "+r"(value));
#endif
}
// The same for an address of an array.
template <class T> __device__ __forceinline__ void early(const T*& x) {
#ifdef __CUDA_ARCH__
  u64 address = __cvta_generic_to_global(x);
  early(address);
  x = static_cast<const T*>(__cvta_global_to_generic(address));
#endif
}
// Loads before it are not put off until their values are used, which would save registers, but wait for one after the other.
__device__ __forceinline__ void loads_go_first() {
#ifdef __CUDA_ARCH__
  __syncwarp(__activemask());
#endif
}
// Compilers know of addresses what to keep.
template <class T> __device__ __forceinline__ void keep(const T*) {}

// Element a + b.
template <class T, class Offset> __device__ __forceinline__ T element_at(const T* x, Offset a, Offset b) { return x[a + b]; }
// The address, by which packs are aligned.
template <class T> __device__ __forceinline__ u64 address_of(const T* from) { return reinterpret_cast<u64>(from); }
// What elements are made from, and what is made of that: of an array, the same.
template <int N, class T> __device__ __forceinline__ Items<T, N> load_raw(const T* from) { return load_items<N>(from); }
template <int N, class T> __device__ __forceinline__ Items<T, N> made_of(const T*, const Items<T, N>& items) { return items; }

// N elements from any address: two aligned packs, funnel-shifted into one. The loads may reach up to N - 1 elements
// before the first element and N elements past the last.
template <int N, class T> __device__ __forceinline__ Items<T, N> funnel_load(const T* from) {
  constexpr int BYTES = sizeof(T) * N, WORDS = BYTES / 4;
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "packs of one load");
  u32 shift = static_cast<u32>(reinterpret_cast<u64>(from) % BYTES);
  const u32* aligned = reinterpret_cast<const u32*>(reinterpret_cast<const char*>(from) - shift);
  Pack<u32, WORDS> low = load<WORDS>(aligned), high = load<WORDS>(aligned + WORDS), out;
  u32 word[2 * WORDS];
#pragma unroll
  for (int w = 0; w < WORDS; ++w) word[w] = low.item[w], word[WORDS + w] = high.item[w];
  if constexpr (WORDS == 4) {
#pragma unroll
    for (int w = 0; w < 6; ++w) word[w] = shift & 8 ? word[w + 2] : word[w];
  }
  if constexpr (WORDS >= 2) {
#pragma unroll
    for (int w = 0; w <= WORDS; ++w) word[w] = shift & 4 ? word[w + 1] : word[w];
  }
#pragma unroll
  for (int w = 0; w < WORDS; ++w) {
    out.item[w] = sizeof(T) < 4 ? __funnelshift_r(word[w], word[w + 1], 8 * (shift % 4)) : word[w];
  }
  return bit_cast<Items<T, N>>(out);
}

template <int N, class T> __device__ __forceinline__ void store_items(T* to, const Items<T, N>& items) {
  *reinterpret_cast<typename Items<T, N>::Loaded*>(to) = bit_cast<typename Items<T, N>::Loaded>(items);
}

// Loads without allocating in L1, so that operands which are read repeatedly stay there.
template <int N, class T> __device__ __forceinline__ Items<T, N> load_past_l1(const T* from) {
  using Loaded = typename Items<T, N>::Loaded;
#ifdef __CUDA_ARCH__
  if constexpr (alignof(Loaded) == 16 && sizeof(Loaded) == 16) {
    Pack<u32, 4> w;
    asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.item[0]), "=r"(w.item[1]), "=r"(w.item[2]), "=r"(w.item[3]) : "l"(from));
    return bit_cast<Items<T, N>>(w);
  }
#endif
  return load_items<N>(from);
}

// Stores without allocating in L1, so that operands which are read repeatedly stay there. (No "memory" clobber: no
// thread loads after a store what that store may have overwritten, so later loads may be moved ahead of it.)
template <int N, class T> __device__ __forceinline__ void store_past_l1(T* to, const Items<T, N>& items) {
  using Loaded = typename Items<T, N>::Loaded;
#ifdef __CUDA_ARCH__
  if constexpr (alignof(Loaded) == 8 && sizeof(Loaded) == 8) {
    asm volatile("st.global.L1::no_allocate.b64 [%0], %1;" ::"l"(to), "l"(bit_cast<u64>(items)));
    return;
  }
  if constexpr (alignof(Loaded) == 16 && sizeof(Loaded) == 16) {
    auto w = bit_cast<Pack<u32, 4>>(items);
    asm volatile("st.global.L1::no_allocate.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w.item[0]), "r"(w.item[1]),
                 "r"(w.item[2]), "r"(w.item[3]));
    return;
  }
#endif
  store_items(to, items);
}

}  // namespace gpuops
