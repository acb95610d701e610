// Runs a grid on one CPU thread: block after block, and within a block one fibre per thread. Kernels
// are compiled with g++'s thread sanitizer, whose calls before each memory access land here.
#include <dlfcn.h>
#include <link.h>
#include <algorithm>
#include <numeric>
#include <vector>
#include "memory.h"

#define API extern "C" __attribute__((visibility("default")))
#define PC __builtin_return_address(0)

namespace {
enum BlockOp { sync, sync_count, sync_and, sync_or };
enum WarpOp { syncwarp, shfl, up, down, exclusive, ballot, any, all, arrive, wait };
const char* const block_names[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and",
                                   "__syncthreads_or"};
const char* const warp_names[] = {"__syncwarp",      "__shfl_sync",   "__shfl_up_sync", "__shfl_down_sync",
                                  "__shfl_xor_sync", "__ballot_sync", "__any_sync",     "__all_sync"};

unsigned at_block_barrier;
unsigned idle_spins;  // how often a spinning thread gave way since any thread got further

uint64_t random_state;
unsigned random_below(unsigned n) {  // splitmix64
  uint64_t z = random_state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return unsigned((z ^ z >> 31) >> 32) % n;
}

Thread& lane_of(unsigned warp, unsigned lane) { return threads[warp * 32 + lane]; }

// ---- warp barriers ------------------------------------------------------------------------------
unsigned source_lane(const Thread& t) {
  unsigned segment = t.lane & ~(t.width - 1u), source = t.lane;
  switch (t.op) {
    case shfl:
      return segment | (unsigned(t.operand) & (t.width - 1u));
    case up:
      source = t.lane - t.operand;
      return int(source) < int(segment) ? t.lane : source;
    case down:
      source = t.lane + t.operand;
      break;
    case exclusive:
      source = t.lane ^ t.operand;
      break;
  }
  return source >= segment + t.width ? t.lane : source;
}

void join_clocks(Warp& warp, unsigned group) {
  if (!warp.synced) {
    memset(warp.clock, 0, sizeof warp.clock);
    for (int lane = 0; lane < 32; ++lane) warp.clock[lane][lane] = 1;
    warp.synced = true;
  }
  uint32_t joined[32] = {};
  for (unsigned rest = group; rest; rest &= rest - 1)
    for (int b = 0; b < 32; ++b) joined[b] = std::max(joined[b], warp.clock[__builtin_ctz(rest)][b]);
  for (unsigned rest = group; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    memcpy(warp.clock[lane], joined, sizeof joined);
    ++warp.clock[lane][lane];
  }
}

// A warp arrives at a named barrier. What any warp did before it arrived is known to those that wait, from then on.
void arrive_named(unsigned w, const Thread& t) {
  Warp& warp = warps[w];
  unsigned number = unsigned(t.value), count = unsigned(t.operand);
  if (number >= 16) return record(&t, t.pc, "there is no barrier %u, only 0 to 15", number);
  NamedBarrier& barrier = named_barriers[number];
  if (!barrier.arrived) barrier = {count, 0, 0, {}};
  if (barrier.threads != count)
    return record(&t, t.pc, "barrier %u is one of %u threads here, and one of %u where others arrived", number,
                  count, barrier.threads);
  barrier.arrived += 32;
  if (barrier.arrived > count)
    return record(&t, t.pc, "barrier %u: more than %u threads have arrived", number, count);
  if (warp.tick == UINT16_MAX) return record(&t, t.pc, "more arrivals at barriers than the emulator can count");
  warp.seen[w] = warp.tick++;
  for (unsigned v = 0; v < warp_count; ++v) barrier.seen[v] = std::max(barrier.seen[v], warp.seen[v]);
  if (t.op == wait) barrier.waiting |= 1u << w;
  if (barrier.arrived < count) return;
  for (unsigned v = 0; v < warp_count; ++v) {
    if (!(barrier.waiting >> v & 1)) continue;
    for (unsigned u = 0; u < warp_count; ++u) warps[v].seen[u] = std::max(warps[v].seen[u], barrier.seen[u]);
    for (unsigned lane = 0; lane < 32; ++lane) lane_of(v, lane).state = State::ready;
    warps[v].ready = warps[v].live;
  }
  barrier.arrived = 0;
}

// All lanes of the group wait at the same operation: does it, and lets them go on.
void finish_warp_barrier(unsigned w, unsigned group) {
  Warp& warp = warps[w];
  int op = lane_of(w, __builtin_ctz(group)).op;
  uint64_t brought[32];
  unsigned votes = 0;
  for (unsigned rest = group; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    brought[lane] = lane_of(w, lane).value;
    if (brought[lane]) votes |= 1u << lane;
  }
  if (op == syncwarp || op == arrive || op == wait) join_clocks(warp, group);
  for (unsigned rest = group; rest; rest &= rest - 1) {
    Thread& t = lane_of(w, __builtin_ctz(rest));
    if (op == ballot) t.value = votes;
    else if (op == any) t.value = votes != 0;
    else if (op == all) t.value = votes == group;
    else if (op >= shfl && op <= exclusive) {
      unsigned source = source_lane(t);
      if (!(group >> source & 1))
        return record(&t, t.pc, "%s reads lane %u, which %s", warp_names[op], source,
                      t.mask >> source & 1 ? "has returned or does not exist" : "is not in the mask");
      t.value = brought[source];
    }
    t.state = op == wait ? State::at_named_barrier : State::ready;
  }
  if (op != wait) warp.ready |= group;
  idle_spins = 0;
  if (op == arrive || op == wait) arrive_named(w, lane_of(w, __builtin_ctz(group)));
}

void finish_warp_barriers(unsigned w) {
  unsigned waiting = 0;
  for (unsigned rest = warps[w].live; rest; rest &= rest - 1)
    if (lane_of(w, __builtin_ctz(rest)).state == State::at_warp_barrier) waiting |= rest & -rest;
  while (waiting && !report.failed) {
    const Thread& first = lane_of(w, __builtin_ctz(waiting));
    unsigned group = first.mask & warps[w].live;
    bool complete = (group & ~waiting) == 0;
    for (unsigned rest = group; complete && rest; rest &= rest - 1) {
      const Thread& t = lane_of(w, __builtin_ctz(rest));
      complete = t.op == first.op && t.mask == first.mask;
    }
    if (complete) finish_warp_barrier(w, group);
    waiting &= complete ? ~group : waiting - 1;
  }
}

// ---- block barriers -----------------------------------------------------------------------------
void finish_block_barrier() {
  const Thread& first = threads[0];
  unsigned count = 0;
  for (unsigned i = 0; i < thread_count; ++i) {
    const Thread& t = threads[i];
    count += t.value != 0;
    if (t.line != first.line || t.op != first.op || strcmp(t.file, first.file))
      return record(&t, t.pc,
                    "barrier divergence: this thread waits at %s, thread (0, 0, 0) at the %s of <0x%llx>",
                    block_names[t.op], block_names[first.op], line_of(first.pc));
  }
  uint64_t result = first.op == sync_and ? count == thread_count : first.op == sync_or ? count != 0 : count;
  for (unsigned i = 0; i < thread_count; ++i) threads[i].value = result, threads[i].state = State::ready;
  for (unsigned w = 0; w < warp_count; ++w) warps[w].ready = warps[w].live;
  at_block_barrier = idle_spins = 0;
  ++epoch;
}

// Nobody can run: says who waits for whom.
void report_deadlock() {
  unsigned returned = 0;
  const Thread* waiting = nullptr;
  for (unsigned i = 0; i < thread_count; ++i) {
    const Thread& t = threads[i];
    if (t.state == State::done) ++returned;
    else if (!waiting || (waiting->state == State::at_block_barrier && t.state == State::at_warp_barrier))
      waiting = &t;
  }
  for (unsigned i = 0; i < thread_count; ++i) {
    const Thread& t = threads[i];
    if (t.state != State::at_named_barrier) continue;
    const NamedBarrier& barrier = named_barriers[t.value];
    return record(&t, t.pc, "deadlock: this thread waits for ever at barrier %u, where %u of %u threads have arrived",
                  unsigned(t.value), barrier.arrived, barrier.threads);
  }
  if (waiting->state == State::at_block_barrier)
    return record(waiting, waiting->pc, "barrier divergence: %u threads wait at %s, %u have returned",
                  at_block_barrier, block_names[waiting->op], returned);
  for (unsigned rest = waiting->mask & warps[waiting->warp].live; rest; rest &= rest - 1) {
    const Thread& other = lane_of(waiting->warp, __builtin_ctz(rest));
    bool block = other.state == State::at_block_barrier;
    if (!block && other.op == waiting->op && other.mask == waiting->mask) continue;
    return record(waiting, waiting->pc,
                  "deadlock: this thread waits for ever at %s(0x%08x), lane %u of that mask waits at the %s "
                  "of <0x%llx>",
                  warp_names[waiting->op], waiting->mask, other.lane,
                  block ? block_names[other.op] : warp_names[other.op], line_of(other.pc));
  }
}

// ---- the scheduler ------------------------------------------------------------------------------
void run_thread() {
  launch.call(launch.argv);
  current->state = State::done;
  yield();
}

void run_warp(unsigned w) {
  Warp& warp = warps[w];
  unsigned first = random_below(32), step = random_below(16) * 2 + 1;  // odd: reaches every lane
  for (unsigned k = 0; k < 32; ++k) {
    unsigned lane = (first + k * step) % 32;
    if (!(warp.ready >> lane & 1)) continue;
    Thread& t = lane_of(w, lane);
    current = &t;
    threadIdx = t.index;
    switch_context(scheduler, t.fibre.context);
    if (report.failed) return;
    if (t.state != State::ready) warp.ready &= ~(1u << lane);
    if (t.state == State::done) warp.live &= ~(1u << lane), idle_spins = 0;
  }
  finish_warp_barriers(w);
}

bool runnable_warp(unsigned& w) {
  unsigned first = random_below(warp_count);
  for (unsigned k = 0; k < warp_count; ++k)
    if (warps[w = (first + k) % warp_count].ready) return true;
  return false;
}

void run_block() {
  first_epoch = ++epoch;
  at_block_barrier = idle_spins = 0;
  for (NamedBarrier& barrier : named_barriers) barrier.arrived = 0;
  for (unsigned i = 0; i < thread_count; ++i) {
    threads[i].state = State::ready;
    threads[i].spins = 0;
    threads[i].fibre.restart(run_thread);
  }
  for (unsigned w = 0; w < warp_count; ++w) {
    unsigned lanes = std::min(32u, thread_count - w * 32);
    warps[w].live = warps[w].ready = ~0u >> (32 - lanes);
    warps[w].synced = false;
    warps[w].tick = 1;
    memset(warps[w].seen, 0, sizeof warps[w].seen);
    for (unsigned lane = 0; lane < 32; ++lane) warps[w].clock[lane][lane] = 1;
  }
  for (;;) {
    unsigned w;
    if (runnable_warp(w)) run_warp(w);
    else if (at_block_barrier == thread_count) finish_block_barrier();
    else if (std::all_of(warps, warps + warp_count, [](const Warp& warp) { return !warp.live; })) return;
    else report_deadlock();
    if (report.failed) return;
  }
}

void find_module(void* code) {
  Dl_info info;
  dladdr(code, &info);
  module_begin = module_end = uint64_t(info.dli_fbase);
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void*) {
        if (object->dlpi_addr != module_begin) return 0;
        for (int i = 0; i < object->dlpi_phnum; ++i)
          if (object->dlpi_phdr[i].p_type == PT_LOAD)
            module_end = std::max<uint64_t>(
                module_end, module_begin + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz);
        return 1;
      },
      nullptr);
}

// Lets other threads run now and then while this one reads the same flag again and again.
void spin(void* pc) {
  if (++current->spins % 4096) return;
  if (++idle_spins > 256 + 64 * thread_count)
    fail(pc,
         "deadlock: this thread spins for ever, perhaps on another block; blocks run one after another here");
  yield();
}

// ---- atomics ------------------------------------------------------------------------------------
enum AtomicOp {
  add,
  sub,
  maximum,
  minimum,
  bit_and,
  bit_or,
  bit_xor,
  exchange,
  compare_and_swap,
  increment,
  decrement
};

template <class T>
T updated(int op, T old, T value, T compare) {
  switch (op) {
    case add:
      return old + value;
    case sub:
      return old - value;
    case exchange:
      return value;
    case compare_and_swap:
      return old == compare ? value : old;
    case maximum:
      return std::max(old, value);
    case minimum:
      return std::min(old, value);
    case increment:
      return old >= value ? 0 : old + 1;
    case decrement:
      return old == 0 || old > value ? value : old - 1;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == bit_and) return old & value;
    if (op == bit_or) return old | value;
    if (op == bit_xor) return old ^ value;
  }
  __builtin_unreachable();
}

template <class T>
T atomic(int op, void* pointer, T value, T compare, void* pc) {
  if (uintptr_t(pointer) % sizeof(T))
    fail(pc, "misaligned: an atomic on %zu bytes at address %p", sizeof(T), pointer);
  check(pointer, sizeof(T), Kind::atomic, pc);
  spin(pc);
  T& place = *static_cast<T*>(pointer);
  T old = place;
  place = updated(op, old, value, compare);
  return old;
}
}  // namespace

// ---- what kernels call (cuda.h) -----------------------------------------------------------------
API void* emulator_shared(Slot* slot) { return shared_variable(slot, PC); }

API int emulator_block_barrier(int op, int predicate, const char* file, int line) {
  Thread& t = *current;
  t.op = op, t.value = predicate, t.file = file, t.line = line, t.pc = PC;
  t.state = State::at_block_barrier;
  ++at_block_barrier;
  yield();
  return int(t.value);
}

API unsigned long long emulator_warp(int op, unsigned mask, unsigned long long value, int operand,
                                     int width) {
  Thread& t = *current;
  if (!(mask >> t.lane & 1))
    fail(PC, "%s: the mask 0x%08x does not name the calling lane %u", warp_names[op], mask, t.lane);
  if (width < 1 || width > 32 || (width & (width - 1)))
    fail(PC, "%s: width %d is not a power of two up to 32", warp_names[op], width);
  t.op = op, t.mask = mask, t.value = value, t.operand = operand, t.width = width, t.pc = PC;
  t.state = State::at_warp_barrier;
  yield();
  return t.value;
}

API unsigned emulator_active_mask() { return warps[current->warp].live; }

#define ATOMIC(name, T)                                               \
  API T emulator_atomic_##name(int op, void* p, T value, T compare) { \
    return atomic<T>(op, p, value, compare, PC);                      \
  }
ATOMIC(int, int)
ATOMIC(uint, unsigned)
ATOMIC(llong, long long)
ATOMIC(ullong, unsigned long long)
ATOMIC(float, float)
ATOMIC(double, double)

// ---- what g++ calls before each access ----------------------------------------------------------
API void __tsan_init() {}
#define ACCESS(name, kind) \
  API void __tsan_##name(void* p, size_t size) { check(p, size, Kind::kind, PC); }
ACCESS(read_range, read)
ACCESS(write_range, write)
#undef ACCESS
#define ACCESS(n)                                                               \
  API void __tsan_read##n(void* p) { check(p, n, Kind::read, PC); }             \
  API void __tsan_write##n(void* p) { check(p, n, Kind::write, PC); }           \
  API void __tsan_unaligned_read##n(void* p) { check(p, n, Kind::read, PC); }   \
  API void __tsan_unaligned_write##n(void* p) { check(p, n, Kind::write, PC); } \
  API void __tsan_volatile_read##n(void* p) {                                   \
    check(p, n, Kind::read, PC);                                                \
    spin(PC);                                                                   \
  }                                                                             \
  API void __tsan_volatile_write##n(void* p) { check(p, n, Kind::write, PC); }  \
  API void __tsan_unaligned_volatile_read##n(void* p) {                         \
    check(p, n, Kind::read, PC);                                                \
    spin(PC);                                                                   \
  }                                                                             \
  API void __tsan_unaligned_volatile_write##n(void* p) { check(p, n, Kind::write, PC); }
ACCESS(1)
ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)

    // The linker sends these three here from kernels (-Wl,--wrap).
    API void* __wrap_memcpy(void* to, const void* from, size_t size) {
  check(from, size, Kind::read, PC);
  check(to, size, Kind::write, PC);
  return memcpy(to, from, size);
}
API void* __wrap_memmove(void* to, const void* from, size_t size) {
  check(from, size, Kind::read, PC);
  check(to, size, Kind::write, PC);
  return memmove(to, from, size);
}
API void* __wrap_memset(void* to, int byte, size_t size) {
  check(to, size, Kind::write, PC);
  return memset(to, byte, size);
}

// ---- what g++'s undefined-behaviour sanitizer calls ---------------------------------------------
namespace {
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];
};
struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor* type;
  uint8_t log_alignment, kind;
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor *array, *index;
};
struct ShiftOutOfBounds {
  SourceLocation location;
  const TypeDescriptor *value, *exponent;
};

long long signed_value(const TypeDescriptor* type, uint64_t value) {  // info: log2(bits) << 1 | is_signed
  int unused_bits = 64 - (1 << (type->info >> 1));
  return type->info & 1 ? int64_t(value << unused_bits) >> unused_bits : int64_t(value);
}
}  // namespace
API void __ubsan_handle_type_mismatch_v1_abort(TypeMismatch* data, uintptr_t address) {
  fail(PC, "misaligned: %s at address 0x%zx needs a multiple of %d", data->type->name, size_t(address),
       1 << data->log_alignment);
}
API void __ubsan_handle_out_of_bounds_abort(OutOfBounds* data, uint64_t index) {
  fail(PC, "out of bounds: index %lld of an array %s", signed_value(data->index, index), data->array->name);
}
API void __ubsan_handle_shift_out_of_bounds_abort(ShiftOutOfBounds* data, uint64_t, uint64_t exponent) {
  fail(PC, "shift of %s by %lld bits", data->value->name, signed_value(data->exponent, exponent));
}
API void __ubsan_handle_divrem_overflow_abort(void*, uint64_t, uint64_t) { fail(PC, "division by zero"); }

// ---- what Python calls --------------------------------------------------------------------------
API const Report* emulator_launch(const Launch* request) {
  launch = *request;
  report = {};
  gridDim = launch.grid;
  blockDim = launch.block;
  random_state = launch.seed;
  find_module(reinterpret_cast<void*>(launch.call));
  thread_count = launch.block.x * launch.block.y * launch.block.z;
  warp_count = (thread_count + 31) / 32;
  start_shared();
  for (unsigned i = 0; i < thread_count; ++i) {
    Thread& t = threads[i];
    if (!t.fibre.bottom) t.fibre.start(i, run_thread);
    t.id = uint16_t(i), t.warp = uint16_t(i / 32), t.lane = uint16_t(i % 32);
    t.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
  }
  std::vector<uint64_t> order(uint64_t(gridDim.x) * gridDim.y * gridDim.z);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_below(unsigned(i))]);
  for (uint64_t block : order) {
    blockIdx = {unsigned(block % gridDim.x), unsigned(block / gridDim.x % gridDim.y),
                unsigned(block / gridDim.x / gridDim.y)};
    run_block();
    if (report.failed) break;
  }
  return &report;
}
