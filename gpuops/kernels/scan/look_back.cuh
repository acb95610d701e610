// How tiles of a line learn what comes before them. Each tile publishes its total; the last tile of a node of the line's
// tree publishes the node's. A tile reads the totals of its elder siblings at each level, all of them at once: no tile waits
// for what another one has read, so no chain of waiting blocks builds up.
//
// A slot of one total is made of words of 8 bytes, half of each a tag that no earlier launch has written. A word is stored and
// loaded as a whole, so what has the tag is the launch's.

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
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
      __nanosleep(20);  // many threads that ask at once would hold up what they wait for
#endif
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

// The slots of a line's tree. Those of a level follow those of the level below.
struct Tree {
  i64 line;
  Index number;
  int wide;
  __device__ __forceinline__ Tree(const Tile& tile, const Scan& p)
      : line((static_cast<i64>(tile.outer) * static_cast<i64>(p.strips.value) + tile.strip) * p.groups), number(tile.number), wide(ONE ? 1 : static_cast<int>(p.columns.value)) {}
  // The group of siblings that node `node` of a level is one of, of a column.
  __device__ __forceinline__ i64 at(int level, Index node, int column, const Scan& p) const {
    Index before = 0, groups = (static_cast<Index>(p.tiles.value) + (RADIX - 1)) >> 4;
    for (int l = 0; l < level; ++l) before += groups, groups = (groups + (RADIX - 1)) >> 4;
    return (line + before + (node >> 4)) * wide + column;
  }
};
template <class Carry> __device__ __forceinline__ Slots<Carry> slots_of(u64* slot, const Launch& launch) {
  return {slot, static_cast<u32>(launch.number) | 0x80000000u};
}

// Publishes the totals of a tile's columns, and of the nodes whose last tile it is. RADIX lanes take a column at a time.
// (ONE: called by one warp, else by the block.)
template <class Engine, class F> __device__ __forceinline__ void publish(F total, u64* slot, const Tile& tile, const Scan& p, const Launch& launch) {
  using Carry = typename Engine::Carry;
  auto slots = slots_of<Carry>(slot, launch);
  Tree tree(tile, p);
  int lane = threadIdx.x % RADIX, groups = ONE ? 2 : blockDim.x / RADIX;
  for (int first = 0; first < tree.wide; first += groups) {
    int column = first + threadIdx.x / RADIX;
    bool mine = column < tile.columns;
    Carry node = mine ? total(column) : Engine::none();
    Index place = tree.number;
    for (int level = 0;; ++level, place >>= 4) {
      if (mine && lane == 0) slots.publish(tree.at(level, place, column, p), place, node);
      if (place % RADIX != RADIX - 1 || level + 1 >= p.levels) break;
      if (mine && lane < RADIX - 1) node = slots.read(tree.at(level, place, column, p), lane);
      node = merged<Engine>(node, RADIX);
    }
  }
}

// What comes before a tile's columns. fold: shared memory for the levels of all columns. RADIX lanes take a level of a column
// at a time. (A block passes barriers.)
template <class Engine> __device__ __forceinline__ void look_back(typename Engine::Carry* before, typename Engine::Carry* fold, u64* slot, const Tile& tile, const Scan& p, const Launch& launch) {
  using Carry = typename Engine::Carry;
  auto slots = slots_of<Carry>(slot, launch);
  Tree tree(tile, p);
  int lane = threadIdx.x % RADIX, groups = blockDim.x / RADIX, wide = tree.wide, items = p.levels * wide;
  bool idle = static_cast<int>(threadIdx.x) / 32 * 2 >= items;  // the whole warp
  for (int first = 0; first < items && !idle; first += groups) {
    int item = first + threadIdx.x / RADIX, level = ONE ? item : item / wide, column = item - level * wide;
    Index place = item < items ? tree.number >> 4 * level : 0;
    int elder = column < tile.columns ? static_cast<int>(place % RADIX) : 0;
    Carry value = lane < elder ? slots.read(tree.at(level, place, column, p), lane) : Engine::none();
    value = merged<Engine>(value, elder);
    if (item < items && lane == 0) fold[item] = value;
  }
  __syncthreads();
  for (int column = threadIdx.x; column < wide; column += blockDim.x) {
    Carry found = fold[(p.levels - 1) * wide + column];
    for (int level = p.levels - 2; level >= 0; --level) found = Engine::merge(found, fold[level * wide + column]);
    before[column] = found;
  }
}
