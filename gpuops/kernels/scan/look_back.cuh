// How tiles of a line learn what comes before them. Each tile publishes its total; the last tile of a node of the line's
// tree publishes the node's. A tile reads the totals of its elder siblings at each level, all of them at once: no tile waits
// for what another one has read, so no chain of waiting blocks builds up.

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
