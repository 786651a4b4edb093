// CUB's algorithms over a whole buffer. Their temporary memory is the caller's, who asks for its size with a null pointer.
#include <cub/cub.cuh>

#include <cstdint>

#define ALGORITHM(name, type, call)                                                                                    \
  extern "C" __attribute__((visibility("default"))) int cub_##name(void *storage, size_t *bytes, const void *from,     \
                                                                   void *to, size_t n, void *queue) {                  \
    auto x = static_cast<const type *>(from);                                                                          \
    auto out = static_cast<type *>(to);                                                                                \
    auto stream = static_cast<cudaStream_t>(queue);                                                                    \
    return call;                                                                                                       \
  }
#define NUMBERS(name, type)                                                                                            \
  ALGORITHM(reduce_##name, type, cub::DeviceReduce::Sum(storage, *bytes, x, out, n, stream))                           \
  ALGORITHM(inclusive_scan_##name, type, cub::DeviceScan::InclusiveSum(storage, *bytes, x, out, n, stream))
NUMBERS(f32, float)
NUMBERS(f64, double)
NUMBERS(i32, int32_t)
NUMBERS(i64, int64_t)
