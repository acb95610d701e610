// Which memory a kernel may touch, and in which order.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include "state.h"

enum class Kind : uint8_t { read, write, atomic };

// ---- shared memory ------------------------------------------------------------------------------
// Dynamic shared memory comes first, then each static variable when a thread first reaches its
// declaration. Bytes between them belong to nobody.
constexpr size_t guard = 256, max_shared = 227 << 10, max_static_shared = 48 << 10, arena_size = 512 << 10;
extern "C" {
__attribute__((visibility("default"))) alignas(256) inline unsigned char emulator_arena[arena_size];
}

// emulator_shared_slot in cuda.h.
struct Slot {
  const char* name;
  size_t size, align, launch;
  void* data;
};
struct Variable {
  const char* name;
  size_t begin, size;
};
inline Variable variables[256];  // 0 is nobody
inline uint8_t owner[arena_size];
inline size_t variable_count, arena_used, static_shared, launch_number;

// One access to one byte of shared memory. epoch counts the block barriers of the whole process, so
// that what an earlier block did is never mistaken for this one's.
struct Access {
  uint32_t epoch, clock, pc;
  uint16_t thread, tick;
};

// Who accessed a byte. Three accesses stand for all: a new one races with some of them if and only if
// it races with the last, the last by another thread, or the last by another warp (given that every
// __syncwarp is of the full warp).
struct Accesses {
  Access last, by_other_thread, by_other_warp;

  void add(const Access& access) {
    if (last.epoch == access.epoch && last.thread != access.thread) {
      by_other_thread = last;
      if (last.thread / 32 != access.thread / 32) by_other_warp = last;
    }
    last = access;
  }
};

// Of plain writes the last will do: it was itself found to be ordered after those before it.
struct Cell {
  Access write;
  Accesses atomics, reads;
};
inline Cell cells[arena_size];
inline uint32_t epoch = 1, first_epoch;

inline void add_variable(const char* name, size_t begin, size_t size) {
  variables[++variable_count] = {name, begin, size};
  memset(owner + begin, int(variable_count), size);
  arena_used = begin + size;
}

inline void start_shared() {
  memset(owner, 0, arena_used);
  ++launch_number;
  variable_count = static_shared = 0;
  arena_used = guard;
  if (launch.dynamic_shared) add_variable("dynamic shared memory", guard, launch.dynamic_shared);
}

inline void* shared_variable(Slot* slot, void* pc) {
  if (slot->launch == launch_number) return slot->data;
  static_shared += slot->size;
  if (static_shared > max_static_shared)
    fail(pc, "too much static shared memory: %zu bytes, CUDA allows %zu", static_shared, max_static_shared);
  if (static_shared + launch.dynamic_shared > max_shared)
    fail(pc, "too much shared memory: %zu bytes, CUDA allows %zu", static_shared + launch.dynamic_shared,
         max_shared);
  // Never better aligned than declared, so that a vector access to a variable without __align__ is found.
  size_t step = slot->align < 16 ? 2 * slot->align : slot->align,
         begin = (arena_used + guard + step - 1) / step * step;
  if (slot->align < 16) begin += slot->align;
  if (begin + slot->size + guard > arena_size || variable_count == 255)
    fail(pc, "too many shared variables for the emulator");
  add_variable(slot->name, begin, slot->size);
  slot->launch = launch_number;
  return slot->data = emulator_arena + begin;
}

inline void* pc_of(const Access& access) { return reinterpret_cast<void*>(module_begin + access.pc); }

// Whether nothing orders an earlier access before what the current thread does now.
inline bool unordered(const Access& a) {
  if (a.epoch != epoch || a.thread == current->id) return false;
  const Warp& warp = warps[current->warp];
  if (a.thread / 32 != current->warp) return warp.seen[a.thread / 32] < a.tick;
  return !warp.synced || warp.clock[current->lane][a.thread % 32] < a.clock;
}

inline const char* doing(Kind kind) {
  return kind == Kind::read ? "reads" : kind == Kind::write ? "writes" : "updates";
}

[[noreturn]] inline void fail_race(size_t offset, Kind kind, const Access& earlier, const char* did,
                                   void* pc) {
  const Variable& variable = variables[owner[offset]];
  const Dim3& other = threads[earlier.thread].index;
  fail(pc,
       "shared memory race: this thread %s byte %zu of %s, which thread (%u, %u, %u) %s at <0x%llx> with no "
       "barrier in between",
       doing(kind), offset - variable.begin, variable.name, other.x, other.y, other.z, did,
       line_of(pc_of(earlier)));
}

inline void fail_if_unordered(const Accesses& earlier, size_t offset, Kind kind, const char* did, void* pc) {
  for (const Access* access : {&earlier.last, &earlier.by_other_thread, &earlier.by_other_warp})
    if (unordered(*access)) fail_race(offset, kind, *access, did, pc);
}

inline void check_shared_byte(size_t offset, Kind kind, const Access& access) {
  Cell& cell = cells[offset];
  void* pc = pc_of(access);
  if (kind != Kind::write && cell.write.epoch < first_epoch) {
    const Variable& variable = variables[owner[offset]];
    fail(pc, "uninitialised shared memory: this thread %s byte %zu of %s, which this block has not written",
         doing(kind), offset - variable.begin, variable.name);
  }
  if (unordered(cell.write)) fail_race(offset, kind, cell.write, "wrote", pc);
  if (kind != Kind::atomic) fail_if_unordered(cell.atomics, offset, kind, "updated", pc);
  if (kind != Kind::read) fail_if_unordered(cell.reads, offset, kind, "read", pc);
  if (kind == Kind::write) cell.write = access;
  else (kind == Kind::read ? cell.reads : cell.atomics).add(access);
}

// ---- any memory ---------------------------------------------------------------------------------
[[noreturn]] inline void fail_outside(uintptr_t address, size_t size, Kind kind, bool shared, void* pc) {
  const char *space = shared ? "shared" : "global", *nearest = nullptr;
  uintptr_t least = UINTPTR_MAX;
  size_t nearest_size = 0;
  bool past = false;
  auto consider = [&](const char* label, uintptr_t begin, size_t bytes) {
    bool after = address + size > begin + bytes;
    uintptr_t distance = after ? address + size - (begin + bytes) : begin - address;
    if (distance < least) least = distance, nearest = label, nearest_size = bytes, past = after;
  };
  if (shared)
    for (size_t i = 1; i <= variable_count; ++i)
      consider(variables[i].name, uintptr_t(emulator_arena) + variables[i].begin, variables[i].size);
  else
    for (size_t i = 0; i < launch.buffer_count; ++i)
      if (launch.buffers[i].label)
        consider(launch.buffers[i].label, launch.buffers[i].begin, launch.buffers[i].size);
  if (address < 4096)
    fail(pc, "null pointer: this thread %s %zu bytes at address %zu", doing(kind), size, size_t(address));
  if (!nearest)
    fail(pc, "out of bounds: this thread %s %zu bytes of %s memory, and the launch has none", doing(kind),
         size, space);
  fail(pc, "out of bounds: this thread %s %zu bytes of %s memory, %s %zu bytes %s %s (%zu bytes)",
       doing(kind), size, space, past ? "ending" : "starting", size_t(least),
       past ? "past the end of" : "before the start of", nearest, nearest_size);
}

inline void check_shared(uintptr_t address, size_t size, Kind kind, void* pc) {
  size_t begin = address - uintptr_t(emulator_arena);
  const Variable& variable = variables[owner[begin]];
  if (!owner[begin] || begin + size > variable.begin + variable.size)
    fail_outside(address, size, kind, true, pc);
  Access access{epoch, warps[current->warp].clock[current->lane][current->lane],
                uint32_t(uint64_t(pc) - module_begin), current->id, warps[current->warp].tick};
  for (size_t offset = begin; offset < begin + size; ++offset) check_shared_byte(offset, kind, access);
}

inline void check_global(uintptr_t address, size_t size, Kind kind, void* pc) {
  const Buffer* read_only = nullptr;
  for (size_t i = 0; i < launch.buffer_count; ++i) {
    const Buffer& buffer = launch.buffers[i];
    uintptr_t offset = address - buffer.begin;
    if (offset >= buffer.size || size > buffer.size - offset) continue;
    if (kind == Kind::read || buffer.writable) return;
    read_only = &buffer;
  }
  if (address >= module_begin && address + size <= module_end) return;
  for (const Dim3* builtin : {&threadIdx, &blockIdx, &blockDim, &gridDim})
    if (kind == Kind::read && address - uintptr_t(builtin) < sizeof(Dim3)) return;
  if (read_only) fail(pc, "read-only: this thread %s %zu bytes of %s", doing(kind), size, read_only->label);
  fail_outside(address, size, kind, false, pc);
}

inline void check(const volatile void* pointer, size_t size, Kind kind, void* pc) {
  auto address = uintptr_t(pointer);
  if (!size || current->fibre.holds(address)) return;
  if (address - uintptr_t(emulator_arena) < arena_size) check_shared(address, size, kind, pc);
  else check_global(address, size, kind, pc);
}
