// How kernels follow each other on a stream.
namespace gpuops {

struct Launch { unsigned long long number; };  // higher than those of the stream's launches before it; 0 if none is needed

// Where device and driver can, every kernel but a cooperative one is launched while the one before it may still run
// (programmatic dependent launch), so that the way to the GPU and the last blocks of that one are hidden. It begins by
// waiting until all that one's memory is written, and may say when the one after it can be made ready: without a word,
// that is when its blocks have ended.
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
