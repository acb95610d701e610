// How tiles of lines that are not in a tree learn each other's totals.

// Totals of tiles in slots: those that fit as Engine::Brief; of others there is more, and the tags say so. A total of all tiles of a
// line so far (SO_FAR) may take the place of that of the last one.
template <class Engine> struct Published {
  using Brief = typename Engine::Brief;
  using Carry = typename Engine::Carry;
  static constexpr int WORDS = (sizeof(Brief) + 3) / 4, ALL = WORDS + (sizeof(Carry) == sizeof(Brief) ? 0 : (sizeof(Carry) + 3) / 4);
  static constexpr u32 LONG = 1u << 30, SO_FAR = 1u << 29;
  u64* slot;
  u32 tag;

  __device__ __forceinline__ Published(u64* slot, const Launch& launch) : slot(slot), tag((static_cast<u32>(launch.number) & (SO_FAR - 1)) | 1u << 31) {}
  // The place of a total's first word; the others are RADIX words apart, so that neighbours' lie side by side.
  __device__ __forceinline__ u64* at(Index tile) const { return slot + tile / RADIX * (ALL * RADIX) + tile % RADIX; }
  template <class T> static __device__ __forceinline__ void store(u64* to, const T& value, u32 tag) {
    u32 word[(sizeof(T) + 3) / 4] = {};
    memcpy(word, &value, sizeof value);
#pragma unroll
    for (u32 w = 0; w < sizeof word / 4; ++w) store_word(to + w * RADIX, word[w], tag);
  }
  template <class T> static __device__ __forceinline__ T value_of(const u64* word) {
    u32 part[(sizeof(T) + 3) / 4];
#pragma unroll
    for (u32 w = 0; w < sizeof part / 4; ++w) part[w] = static_cast<u32>(word[w]);
    T value;
    memcpy(&value, part, sizeof value);
    return value;
  }
  __device__ __forceinline__ void publish(Index tile, const Carry& total, u32 kind = 0) const {
    bool fits = Engine::fits(total);
    if constexpr (ALL > WORDS) {
      if (!fits) store(at(tile) + WORDS * RADIX, total, tag | kind);
    }
    store(at(tile), Engine::brief(total), (fits ? tag : tag | LONG) | kind);
  }
  // What there is more of a total.
  __device__ __noinline__ Carry rest(const u64* from) const {
    u64 word[ALL];
    for (int w = WORDS; w < ALL; ++w) {
      while (static_cast<u32>((word[w] = load_word(from + w * RADIX)) >> 32) != tag) rest_a_little();
    }
    return value_of<Carry>(word + WORDS);
  }
  // The first words of N tiles at once, of those that have an address.
  template <int N, int M> __device__ __forceinline__ void load(const u64* (&from)[N], u64 (&word)[N][M]) const {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int w = 0; w < WORDS; ++w) word[n][w] = from[n] ? load_word(from[n] + w * RADIX) : u64(tag) << 32;
    }
  }
  // Waits for the totals of N tiles at once, those that have an address.
  template <int N> __device__ __forceinline__ void read(const u64* (&from)[N], Carry (&total)[N]) const {
    u64 word[N][WORDS];
    while (true) {
      bool there = true;
      load(from, word);
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) there &= (static_cast<u32>(word[n][w] >> 32) | LONG) == (tag | LONG);
      }
      if (there) break;
      rest_a_little();
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (from[n]) total[n] = Engine::of(value_of<Brief>(word[n]));
      if (ALL > WORDS && static_cast<u32>(word[n][0] >> 32) != tag) total[n] = rest(from[n]);
    }
  }
  // Waits for the totals of N tiles at once, those that have an address. Returns which are of all tiles so far, as bits.
  template <int N> __device__ __forceinline__ u32 read_either(const u64* (&from)[N], Carry (&total)[N]) const {
    u64 word[N][ALL];
    u32 kinds;
    while (true) {
      bool there = true;
      kinds = 0;
      load(from, word);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        u32 first = static_cast<u32>(word[n][0] >> 32), kind = first & SO_FAR;
        there &= (first & ~(LONG | SO_FAR)) == tag;
#pragma unroll
        for (int w = 1; w < WORDS; ++w) there &= static_cast<u32>(word[n][w] >> 32) == first;
        if (ALL > WORDS && there && (first & LONG)) {
          for (int w = WORDS; w < ALL; ++w) there &= static_cast<u32>((word[n][w] = load_word(from[n] + w * RADIX)) >> 32) == (tag | kind);
        }
        kinds |= static_cast<u32>(kind != 0) << n;
      }
      if (there) break;
      rest_a_little();
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (from[n]) total[n] = ALL > WORDS && (word[n][0] >> 32 & LONG) ? value_of<Carry>(word[n] + WORDS) : Engine::of(value_of<Brief>(word[n]));
    }
    return kinds;
  }
};
