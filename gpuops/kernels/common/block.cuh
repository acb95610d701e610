// Reducing one value per thread to one value per group, warp, block or grid.
namespace gpuops {

// A value of any size of which each word is moved.
template <class S, class F> __device__ __forceinline__ S by_words(S value, F move) {
  constexpr int WORDS = (sizeof(S) + 3) / 4;
  u32 word[WORDS] = {};
  memcpy(word, &value, sizeof value);
#pragma unroll
  for (int w = 0; w < WORDS; ++w) word[w] = move(word[w]);
  memcpy(&value, word, sizeof value);
  return value;
}
// The value of another lane.
template <class S> __device__ __forceinline__ S shuffle(S value, int lane) {
  return by_words(value, [=](u32 word) { return __shfl_sync(0xffffffffu, word, lane); });
}
template <class S> __device__ __forceinline__ S shuffle_up(S value, int by) {
  return by_words(value, [=](u32 word) { return __shfl_up_sync(0xffffffffu, word, by); });
}
template <class S> __device__ __forceinline__ S shuffle_xor(S value, int mask) {
  return by_words(value, [=](u32 word) { return __shfl_xor_sync(0xffffffffu, word, mask); });
}

// Searches with 32-bit values and indices: one instruction finds the maximum of a warp, another its first index.
template <class Op> constexpr bool BRIEF = false;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <class V> constexpr bool BRIEF<ArgMax<V, i32>> = sizeof(typename ArgMax<V, i32>::A) == 4;
template <class V> constexpr bool BRIEF<ArgMin<V, i32>> = BRIEF<ArgMax<V, i32>>;
template <class Base, class V> constexpr bool BRIEF<WithIndex<Base, V>> = BRIEF<Base>;
template <class Base, class V> constexpr bool BRIEF<WithoutNan<Base, V>> = BRIEF<Base>;
#endif
// key_of: an integer that increases with a number (FALLS: decreases). NaN has the greatest key, 0 and -0 have the same one.
// number_of: the number of a key.
template <bool FALLS> __device__ __forceinline__ i32 key_of(float x) {
  float number = FALLS ? 0.0f - x : 0.0f + x;
  i32 bits = bit_cast<i32>(number);
  return is_nan(number) ? 0x7fffffff : bits ^ (bits >> 31 & 0x7fffffff);
}
template <bool FALLS> __device__ __forceinline__ i32 key_of(i32 x) { return FALLS ? ~x : x; }
template <bool FALLS> __device__ __forceinline__ i32 key_of(u32 x) { return key_of<FALLS>(static_cast<i32>(x ^ 0x80000000u)); }
template <bool FALLS, class A> __device__ __forceinline__ A number_of(i32 key) {
  if constexpr (SAME<A, float>) {
    float number = bit_cast<float>(key ^ (key >> 31 & 0x7fffffff));
    return FALLS ? 0.0f - number : number;
  } else {
    return static_cast<A>((FALLS ? ~key : key) ^ (SIGNED<A> ? 0 : 0x80000000u));
  }
}

// Reduces exact sums over aligned groups of WIDTH lanes. WHOLE: all groups have the same values.
template <class Op, int WIDTH, bool WHOLE> __device__ __forceinline__ typename Op::State exact_lanes(typename Op::State value);

// Reduces over aligned groups of WIDTH lanes; every lane gets its group's result. All 32 lanes of the warp take part.
template <class Op, int WIDTH = 32> __device__ __forceinline__ typename Op::State warp_reduce(typename Op::State value) {
  if constexpr (Op::EXPONENTIAL) {  // the maximum first: each sum is rescaled once
    using A = typename Op::A;
    A max = warp_reduce<Max<A>, WIDTH>(value.max);
    bool at_max = value.max == max;  // each such lane has left out one 1
    u32 votes = __ballot_sync(0xffffffffu, at_max) >> threadIdx.x % 32 / WIDTH * WIDTH & (0xffffffffu >> (32 - WIDTH));
    return {max, rest_of(warp_reduce<Added<A>, WIDTH>(at_max ? value.rest : Op::lifted(value, max)), A(__popc(votes)))};
  }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (BRIEF<Op> && WIDTH == 32) {
    i32 key = key_of<Op::FALLS>(value.value), top = __reduce_max_sync(0xffffffffu, key);
    i32 place = __reduce_min_sync(0xffffffffu, key == top ? value.index() : Op::NOWHERE);
    return Op::state(number_of<Op::FALLS, typename Op::A>(top), place);
  }
#endif
  if constexpr (Op::INDEXED) {  // the value first, then the lowest index that has it
    auto top = warp_reduce<typename Op::Top, WIDTH>(value.value);
    typename Op::Place place = Op::same(value.value, top) ? value.index() : Op::NOWHERE;
    return Op::state(top, warp_reduce<Min<typename Op::Place>, WIDTH>(place));
  }
  if constexpr (Op::EXACT && WIDTH > 1) return exact_lanes<Op, WIDTH, WIDTH == 32>(value);
#pragma unroll
  for (int mask = WIDTH / 2; mask > 0; mask /= 2) value = Op::combine(value, shuffle_xor(value, mask));
  return value;
}

// Reduces over lanes that differ in bits HIGH … LOW of their index, both known at run time; LOW > HIGH: over none.
template <class Op> __device__ __forceinline__ typename Op::State lanes_reduce(typename Op::State value, int low, int high) {
  if constexpr (Op::EXPONENTIAL) {  // the maximum first: each sum is rescaled once
    using A = typename Op::A;
    A max = lanes_reduce<Max<A>>(value.max, low, high);
    bool at_max = value.max == max;  // each such lane has left out one 1
    A ones = lanes_reduce<Added<A>>(A(at_max), low, high);
    return {max, rest_of(lanes_reduce<Added<A>>(at_max ? value.rest : Op::lifted(value, max), low, high), ones)};
  }
  if constexpr (Op::INDEXED) {  // the value first, then the lowest index that has it
    auto top = lanes_reduce<typename Op::Top>(value.value, low, high);
    typename Op::Place place = Op::same(value.value, top) ? value.index() : Op::NOWHERE;
    return Op::state(top, lanes_reduce<Min<typename Op::Place>>(place, low, high));
  }
#pragma unroll 1
  for (int mask = high; mask >= low; mask /= 2) value = Op::combine(value, shuffle_xor(value, mask));
  return value;
}

// Reduce-scatter of N values over the lanes that differ in bits HIGH … LOW of their index. At each step a lane sends
// half of its values to its partner and combines the other half with what it receives, so N values cost hardly more
// shuffles than one. Afterwards a lane holds results first … first + N / lanes - 1. With more lanes than values it
// holds one, and lanes that differ in the lowest bits hold the same. Returns first.
template <class Op, int HIGH, int LOW, int N> __device__ __forceinline__ int share(typename Op::State (&value)[N]) {
  if constexpr (N == 1 && HIGH > 0 && LOW == 1) {
    value[0] = warp_reduce<Op, 2 * HIGH>(value[0]);
    return 0;
  }
  int first = 0, count = N;
#pragma unroll
  for (int mask = HIGH; mask >= LOW && mask > 0; mask /= 2) {
    if (count == 1) {
      value[0] = Op::combine(value[0], shuffle_xor(value[0], mask));
      continue;
    }
    bool upper = threadIdx.x & mask;
    count /= 2;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      if (i >= count) continue;
      auto mine = upper ? value[i + count] : value[i], theirs = upper ? value[i] : value[i + count];
      value[i] = Op::combine(mine, shuffle_xor(theirs, mask));
    }
    first += upper ? count : 0;
  }
  return first;
}

// Reduces over a block of THREADS threads (a power of two, 32 or more); every thread (EVERY) or the first warp gets the
// result. Each Op has shared memory of its own, so no barrier follows. Between two calls with the same Op a kernel must
// pass a barrier.
template <class Op, int THREADS, bool EVERY = true> __device__ __forceinline__ typename Op::State block_reduce(typename Op::State value) {
  __shared__ typename Op::State partial[THREADS / 32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_reduce<Op>(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  if (!EVERY && warp > 0) return value;
  value = partial[lane % (THREADS / 32)];
  if constexpr (Op::EXACT) return exact_lanes<Op, THREADS / 32, true>(value);
  else return warp_reduce<Op, BRIEF<Op> ? 32 : THREADS / 32>(value);
}

// Reduces over the threads of each output; every thread gets its output's result. BLOCK: the most threads. Between two
// calls with the same Op a kernel must pass a barrier.
template <class Op, int BLOCK> __device__ __forceinline__ typename Op::State shared_reduce(typename Op::State value, const Shares& shares) {
  __shared__ typename Op::State cells[BLOCK], total[32];
  u32 wide = 1u << shares.wide, warps = blockDim.x / 32, lane = threadIdx.x % 32;
  value = lanes_reduce<Op>(value, shares.across ? wide : 1, shares.across ? 16 : (1 << min(shares.lanes, 5)) / 2);
  if (!shares.across && shares.lanes <= 5) return value;
  if (lane < wide) cells[threadIdx.x / 32 * wide + lane] = value;
  __syncthreads();
  u32 level = threadIdx.x & (warps - 1), shift = shares.lanes + shares.wide - 5, output = threadIdx.x >> shift;
  if ((threadIdx.x - lane) >> shift < wide) {
    value = lanes_reduce<Op>(cells[level * wide + min(output, wide - 1)], 1, warps / 2);
    if (output < wide && level == 0) total[output] = value;
  }
  __syncthreads();
  return total[shares.output()];
}

// ---- asynchronous copies to shared memory (cp.async)
// After copies_there the thread that issued a copy can read it; other threads need a barrier, too. Before sm_80, and
// for sizes other than 4, 8 and 16 bytes, the copy is synchronous.
template <class T> __device__ __forceinline__ void copy_async(T* to, const T* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u32 here = static_cast<u32>(__cvta_generic_to_shared(to));
  if constexpr (sizeof(T) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(here), "l"(from) : "memory");
    return;
  }
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(here), "l"(from), "n"(sizeof(T)) : "memory");
    return;
  }
#endif
  *to = *from;
}
template <int N, class T> __device__ __forceinline__ void copy_items(Items<T, N>* to, const T* from) {
  copy_async(to, reinterpret_cast<const Items<T, N>*>(from));
}
template <int N, class T> __device__ __forceinline__ auto packs_from(const T* from) {
  return reinterpret_cast<const typename Items<T, N>::Loaded*>(from);
}
template <int N, class T> __device__ __forceinline__ void copy_pack(T* to, const typename Items<T, N>::Loaded* from) {
  copy_async(reinterpret_cast<typename Items<T, N>::Loaded*>(to), from);
}
template <int N, class T> __device__ __forceinline__ void copy_pack(T* to, const T* from) {
  if constexpr (N == 1) copy_async(to, from);
  else copy_pack<N>(to, packs_from<N>(from));
}
// The same for N floats; zeros, if they are not inside their array.
template <int N> __device__ __forceinline__ void copy_async_inside(float* to, const float* from, bool inside) {
  static_assert(N == 1 || N == 4, "4 or 16 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u32 here = static_cast<u32>(__cvta_generic_to_shared(to)), bytes = inside ? 4 * N : 0;
  if constexpr (N == 4) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(here), "l"(from), "r"(bytes) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(here), "l"(from), "r"(bytes) : "memory");
#else
  Pack<float, N> pack{};
  if (inside) pack = load<N>(from);
  store(to, pack);
#endif
}
// Commits the copies since the last call as a group.
__device__ __forceinline__ void copies_sent() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most the last PENDING groups are still in flight.
template <int PENDING> __device__ __forceinline__ void copies_there() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// ---- barriers of some of a block's warps
// Barrier `barrier`, from 1 to 15, is complete when so many threads have arrived: those of warps that go on at once, and of warps
// that wait until then.
__device__ __forceinline__ void barrier_arrive(int barrier, int threads) {
#ifdef __CUDA_ARCH__
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#else
  emulator_barrier_arrive(barrier, threads);
#endif
}
__device__ __forceinline__ void barrier_wait(int barrier, int threads) {
#ifdef __CUDA_ARCH__
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#else
  emulator_barrier_sync(barrier, threads);
#endif
}

// ---- clusters: blocks write to each other's distributed shared memory
// cluster_begin initialises this block's mbarrier `arrivals`. cluster_wait waits until all blocks have done so.
// store_to writes to `to` in the shared memory of block `rank`, and counts the bytes at that block's mbarrier.
// cluster_meet waits until `bytes` bytes have arrived in this block. So a block waits only for its own data. A barrier
// of the whole cluster would also wait until all other blocks have theirs.
__device__ __forceinline__ void cluster_begin(u64* arrivals) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    u32 here = static_cast<u32>(__cvta_generic_to_shared(arrivals));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(here) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
template <int N> __device__ __forceinline__ void store_to(u32 rank, Pack<u64, N>* to, Pack<u64, N> value, u64* arrivals) {
  static_assert(N == 1 || N == 2, "a single store");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  u32 there = static_cast<u32>(__cvta_generic_to_shared(to)), arrivals_there = static_cast<u32>(__cvta_generic_to_shared(arrivals));
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(there) : "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(arrivals_there) : "r"(rank));
  if constexpr (N == 1) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(there),
                 "l"(value.item[0]), "r"(arrivals_there)
                 : "memory");
  } else {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(there),
                 "l"(value.item[0]), "l"(value.item[1]), "r"(arrivals_there)
                 : "memory");
  }
#endif
}
__device__ __forceinline__ void cluster_meet(u64* arrivals, u32 bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  u32 here = static_cast<u32>(__cvta_generic_to_shared(arrivals)), all = 0;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(here), "r"(bytes) : "memory");
  }
  while (!all) {
    asm volatile("{ .reg .pred all; mbarrier.try_wait.parity.shared::cta.b64 all, [%1], 0; selp.u32 %0, 1, 0, all; }"
                 : "=r"(all)
                 : "r"(here)
                 : "memory");
  }
#endif
}

// ---- ticket counters and grid barriers
// A counter in scratch memory: its upper half is the launch number, its lower half the number of arrivals. The launch
// numbers of a stream grow. So whatever an earlier launch has left there, even an aborted one, is less than this
// launch's initial value. Returns the number of earlier arrivals.
__device__ __forceinline__ u32 arrive(u64* word, Launch launch) {
  atomicMax(word, launch.number << 32);
  return static_cast<u32>(atomicAdd(word, u64(1)));
}

// Grid barrier of `count` resident blocks, called by one thread of each: waits until all have arrived for the
// (round + 1)-th time. Volatile loads, which bypass L1, then see what the blocks wrote before.
__device__ __forceinline__ void meet(u64* barrier, u32 count, u32 round, Launch launch) {
#ifdef __CUDA_ARCH__
  __threadfence();
  arrive(barrier, launch);
  u64 all = (launch.number << 32) + u64(count) * (round + 1);
  while (*static_cast<volatile u64*>(barrier) < all) {}
  __threadfence();
#endif
}

// Spins for `cycles` clock cycles. (The emulator has no clock and needs none.)
__device__ __forceinline__ void pause(i64 cycles) {
#ifdef __CUDA_ARCH__
  i64 until = clock64() + cycles;
  while (clock64() < until) {}
#endif
}

// Ticket counter: whether this block is the last of `count` to arrive. The last block sees what the others wrote before
// they arrived. The ticket decides which block adds up the partial results, never in which order. The last block resets
// it to 0: another launch of the same plan may use it with the same launch number.
__device__ __forceinline__ bool last_block(u64* ticket, u32 count, Launch launch) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = arrive(ticket, launch) == count - 1;
    if (last) atomicExch(ticket, u64(0));
    __threadfence();
  }
  __syncthreads();
  return last;
}

}  // namespace gpuops
