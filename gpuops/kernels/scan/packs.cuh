// OWN elements of each lane of a warp in shared memory: lane after lane, the packs of a lane in an order of its own, so that eight
// neighbours access packs in different banks. BACK: a pack has its elements in the order of memory, which is the opposite one.

template <class T, int OWN, bool BACK> struct Packs {
  static constexpr int VEC = sizeof(T) < 16 ? 16 / sizeof(T) : 1, PACKS = OWN / VEC;
  using Items = gpuops::Items<T, VEC>;
  using Loaded = typename Items::Loaded;
  // Where pack n of a lane is.
  static __device__ __forceinline__ int first_pack(int lane) { return lane * PACKS + (PACKS < 8 ? lane / (8 / min(8, PACKS)) % PACKS : lane % 8); }
  static __device__ __forceinline__ int pack(int first, int n) { return (first ^ n) * VEC; }
  // Where element e of all lanes is.
  static __device__ __forceinline__ int element(int e) {
    int i = e % OWN;
    return pack(first_pack(e / OWN), i / VEC) + (BACK ? VEC - 1 - i % VEC : i % VEC);
  }

  int own;  // the lane's first pack
  __device__ __forceinline__ Packs() : own(first_pack(threadIdx.x % 32)) {}
  // Elements of the lane, pack by pack, and results.
  __device__ __forceinline__ Items items(const T* staged, int n) const { return load_items<VEC>(staged + pack(own, n)); }
  static __device__ __forceinline__ T get(const Items& items, int v) { return items.get(BACK ? VEC - 1 - v : v); }
  __device__ __forceinline__ void put(T* to, int n, const T (&results)[VEC]) const {
    Items items;
#pragma unroll
    for (int v = 0; v < VEC; ++v) items.set(v, results[BACK ? VEC - 1 - v : v]);
    *reinterpret_cast<Loaded*>(to + pack(own, n)) = bit_cast<Loaded>(items);
  }
};
