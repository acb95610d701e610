// A fibre is one CUDA thread: a stack, and the place where it stopped.
#pragma once
#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#ifndef __x86_64__
#include <ucontext.h>
#endif

constexpr unsigned max_threads = 1024;
constexpr size_t stack_size = 128 << 10;

#ifdef __x86_64__
// Saves the registers that a call must keep, as swapcontext does, but without its two system calls.
asm(R"(
.text
.hidden emulator_switch
.globl emulator_switch
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
extern "C" void emulator_switch(void** from, void* to);
using Context = void*;
inline void switch_context(Context& from, Context& to) { emulator_switch(&from, to); }
inline void make_context(Context& context, char*, char* top, void (*run)()) {
  auto frame = reinterpret_cast<void**>(top) - 8;  // six registers, run, and no caller to return to
  frame[6] = reinterpret_cast<void*>(run);
  frame[7] = nullptr;
  context = frame;
}
#else
using Context = ucontext_t;
inline void switch_context(Context& from, Context& to) { swapcontext(&from, &to); }
inline void make_context(Context& context, char* bottom, char* top, void (*run)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = bottom;
  context.uc_stack.ss_size = top - bottom;
  context.uc_link = nullptr;
  makecontext(&context, run, 0);
}
#endif

// All stacks ever needed, mapped once; a page of memory is used only once a thread has touched it.
inline char* stack_of(unsigned thread) {
  static char* stacks = static_cast<char*>(mmap(nullptr, max_threads * stack_size, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return stacks + thread * stack_size;
}

struct Fibre {
  Context context;
  char *bottom, *top;

  void start(unsigned thread, void (*run)()) {
    bottom = stack_of(thread);
    mprotect(bottom, getpagesize(), PROT_NONE);
    // Staggered, or the busy ends of all stacks would fall in the same sets of the CPU's cache.
    top = bottom + stack_size - thread % 32 * 128;
    restart(run);
  }
  void restart(void (*run)()) { make_context(context, bottom, top, run); }
  bool holds(uintptr_t address) const { return address - uintptr_t(bottom) < stack_size; }
};
