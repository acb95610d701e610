// How tiles learn each other's totals. A slot of one total is made of words of 8 bytes, half of each a tag that no earlier
// launch has written. A word is stored and loaded as a whole, so what has the tag is the launch's.

__device__ __forceinline__ void store_word(u64* to, u32 part, u32 tag) {
  u64 word = static_cast<u64>(tag) << 32 | part;
#ifdef __CUDA_ARCH__
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
#else
  *to = word;
#endif
}
__device__ __forceinline__ u64 load_word(const u64* from) {
#ifdef __CUDA_ARCH__
  u64 word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
#else
  return atomicAdd(const_cast<u64*>(from), u64(0));
#endif
}
// Before a thread asks again: many that ask at once would hold up what they wait for.
__device__ __forceinline__ void rest_a_little() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
  __nanosleep(20);
#endif
}

// The slots of a launch, of totals of type S.
template <class S> struct Slots {
  static constexpr int WORDS = (sizeof(S) + 3) / 4;
  u64* slot;
  u32 tag;

  // The place of the first word of a total; the others are RADIX words apart, so that siblings' lie side by side.
  __device__ __forceinline__ u64* first(i64 group, Index node) const { return slot + group * (WORDS * RADIX) + node % RADIX; }

  __device__ __forceinline__ void publish(i64 group, Index node, const S& total) const {
    u32 part[WORDS] = {};
    u64* to = first(group, node);
    memcpy(part, &total, sizeof total);
#pragma unroll
    for (int w = 0; w < WORDS; ++w) store_word(to + w * RADIX, part[w], tag);
  }
  // Waits for a total.
  __device__ __forceinline__ S read(i64 group, Index node) const {
    const u64* from = first(group, node);
    u64 word[WORDS];
    while (true) {
      bool there = true;
#pragma unroll
      for (int w = 0; w < WORDS; ++w) word[w] = load_word(from + w * RADIX);
#pragma unroll
      for (int w = 0; w < WORDS; ++w) there &= static_cast<u32>(word[w] >> 32) == tag;
      if (there) break;
      rest_a_little();
    }
    u32 part[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) part[w] = static_cast<u32>(word[w]);
    S total;
    memcpy(&total, part, sizeof total);
    return total;
  }
};

// Merges the values of the first `count` of RADIX lanes, in order; all of these lanes get the result.
template <class Engine> __device__ __forceinline__ typename Engine::Carry merged(typename Engine::Carry value, int count) {
  using Carry = typename Engine::Carry;
  int lane = threadIdx.x % 32, base = lane / RADIX * RADIX;
  if (lane - base >= count) value = Engine::none();
  if constexpr (ORDERED) {
    Carry all = shuffle(value, base);
#pragma unroll 1
    for (int i = 1; i < RADIX; ++i) {
      Carry next = shuffle(value, base + i);
      if (i < count) all = Engine::merge(all, next);
    }
    return all;
  } else {
#pragma unroll
    for (int mask = 1; mask < RADIX; mask *= 2) value = Engine::merge(value, shuffle_xor(value, mask));
    return value;
  }
}
