// Programmatic dependent launch: how consecutive kernels of a stream overlap.
namespace gpuops {

struct Launch { unsigned long long number; };  // higher than any earlier launch's on the same scratch; 0 if unused

// Where device and driver support it, every kernel except a cooperative one may start while its predecessor still runs.
// This hides the launch latency and the predecessor's last blocks. Every kernel first calls wait_for_previous(), which
// returns when the predecessor has finished and its writes are visible. let_next_start() lets the next kernel start
// once all blocks have called it or exited; without that call, once all blocks have exited.
__device__ __forceinline__ void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

}  // namespace gpuops
