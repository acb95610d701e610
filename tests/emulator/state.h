// What the parts of the runtime share: the launch, its threads, and the report of what went wrong.
#pragma once
#include <cstdarg>
#include <cstdio>
#include "fibre.h"

struct Dim3 {
  unsigned x, y, z;
};

// Python fills in these two and reads the third, field by field (module.py).
struct Buffer {
  uintptr_t begin;
  size_t size;
  size_t writable;
  const char* label;  // null: the bytes of the arguments themselves
};
struct Launch {
  void (*call)(void** argv);
  void** argv;
  Dim3 grid, block;
  size_t dynamic_shared;
  uint64_t seed;
  const Buffer* buffers;
  size_t buffer_count;
};
struct Report {
  uint64_t address;  // of the faulty call, as line_of gives it
  Dim3 block, thread;
  unsigned failed, in_thread;
  char text[1024];  // <0x...>: a line of source, as line_of gives it
};

enum class State : uint8_t { ready, at_block_barrier, at_warp_barrier, at_named_barrier, done };

struct Thread {
  Fibre fibre;
  Dim3 index;
  uint16_t id, warp, lane;
  State state;
  unsigned spins;
  // What it waits for, and what it brings there.
  int op;
  const char* file;  // of a block barrier
  int line;
  unsigned mask;  // of a warp barrier
  uint64_t value;
  int operand, width;
  void* pc;
};

struct Warp {
  unsigned live, ready;    // one bit per lane
  bool synced;             // whether a __syncwarp has moved the clocks since the block began
  uint32_t clock[32][32];  // clock[a][b]: up to which of b's __syncwarps lane a knows what b did
  uint16_t tick;           // its arrivals at named barriers, and 1
  uint16_t seen[32];       // up to which of another warp's arrivals it knows what that warp did
};

// A named barrier: complete when `threads` have arrived, of which some wait.
struct NamedBarrier {
  unsigned threads, arrived;
  uint32_t waiting;    // one bit per warp
  uint16_t seen[32];   // what the warps that arrived know
};

inline Launch launch;
inline Report report;
inline Thread threads[max_threads];
inline Warp warps[max_threads / 32];
inline NamedBarrier named_barriers[16];
inline unsigned thread_count, warp_count;
inline Thread* current;
inline Context scheduler;
inline uint64_t module_begin, module_end;  // where the kernel's own code and constants lie

extern "C" {
__attribute__((visibility("default"))) inline Dim3 threadIdx, blockIdx, blockDim, gridDim;
}

// What addr2line takes: an address in the call that returns to pc.
inline unsigned long long line_of(void* pc) { return uint64_t(pc) - 1 - module_begin; }

// Notes the first fault, found by the scheduler itself.
inline void vrecord(const Thread* thread, void* pc, const char* format, va_list values) {
  report.failed = 1;
  report.block = blockIdx;
  report.in_thread = thread != nullptr;
  if (thread) report.thread = thread->index;
  report.address = line_of(pc);
  vsnprintf(report.text, sizeof report.text, format, values);
}
__attribute__((format(printf, 3, 4))) inline void record(const Thread* thread, void* pc, const char* format,
                                                         ...) {
  va_list values;
  va_start(values, format);
  vrecord(thread, pc, format, values);
  va_end(values);
}

inline void yield() { switch_context(current->fibre.context, scheduler); }

// Notes a fault of the current thread, which never runs again: the launch is given up.
__attribute__((format(printf, 2, 3), noreturn)) inline void fail(void* pc, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vrecord(current, pc, format, values);
  va_end(values);
  yield();
  __builtin_unreachable();
}
