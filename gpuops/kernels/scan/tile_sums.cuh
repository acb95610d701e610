// Exact sums of tiles: the sizes of elements of each line, and how results are rounded.

constexpr int LONGEST = BLOCK <= 256 ? 12 : BLOCK <= 512 ? 13 : 14;  // log2 of the elements that a line has in a tile, at most

template <class V> struct TileSums : ExactPrefix<V, LONGEST> {
  using Base = ExactPrefix<V, LONGEST>;
  using typename Base::Carry, typename Base::Extremes;
  __device__ __forceinline__ explicit TileSums(const Extremes& found) : Base(found) {}
  // Sizes of the elements of each line in a tile, of two in turn.
  struct Sizes { u32 most[BLOCK], least[BLOCK]; };
  static __device__ __forceinline__ Sizes& sizes(int turn) {
    __shared__ Sizes found[2];
    return found[turn];
  }
  static __device__ __forceinline__ void clear(int lines, int turn) {
    for (int i = threadIdx.x; i < lines; i += blockDim.x) sizes(turn).most[i] = 0, sizes(turn).least[i] = ~0u;
  }
  // Looks at a chunk. A barrier must have followed `clear`, and one must follow.
  static __device__ __forceinline__ void look(const Tin (&x)[EACH], bool there, int line, int turn) {
    auto found = Extremes::of(x);
    bool one = true;
    if constexpr (ONE && LOOK) found = found.of_warp(), one = threadIdx.x % 32 == 0;  // all threads have one line
    if (there && one) atomicMax(sizes(turn).most + line, found.most), atomicMin(sizes(turn).least + line, found.least);
  }
  static __device__ __forceinline__ Extremes found_in(int line, int turn) { return {sizes(turn).most[line], sizes(turn).least[line]}; }
  static __device__ __forceinline__ Carry carried(const typename Base::Local& total, int line, int turn) { return TileSums(found_in(line, turn)).Base::carried(total); }
};
// Other engines need to know nothing.
template <class Engine> struct Plainly : Engine {
  using typename Engine::Local, typename Engine::Carry;
  static __device__ __forceinline__ Carry carried(const Local& total, int, int) { return total; }
};

// The same of lines that a thread has whole.
template <class V> struct ExactShort {
  using Carry = Expansion;
  Expansion sum;
  static __device__ __forceinline__ Carry none() { return {-0.0, -0.0, 0}; }
  __device__ __forceinline__ void restart() { sum = none(); }
  __device__ __forceinline__ void next(Tin element) {
    double x = convert<double>(convert<V>(element));
    bool huge = SAME<V, double> && fabs(x) >= 0x1p960 && is_finite(x);
    Expansion more = sum.plus(x);
    sum.s = huge ? sum.s : more.s;
    sum.e = huge || !is_finite(more.s) ? sum.e : more.e;
    sum.r = huge ? Limits<double>::greatest() : is_finite(more.s) ? more.r : 0;
  }
  __device__ __forceinline__ Tout result(bool& open) const {
    if (!is_finite(sum.s) || (sum.s == 0 && sum.e == 0 && sum.r == 0)) return convert<Tout>(narrowed<V>(sum.s));
    return convert<Tout>(rounded<V>(sum, open));
  }
};
template <class Engine> struct Short {
  typename Engine::Carry state;
  __device__ __forceinline__ void restart() { state = Engine::none(); }
  __device__ __forceinline__ void next(Tin x) { state = Engine::add(state, x); }
  __device__ __forceinline__ Tout result(bool&) const { return Engine::finished(state); }
};
