// CUB's algorithms over whole buffers. Their temporary memory is the caller's, who asks for its size with a null pointer.
#include <cub/cub.cuh>

#include <cstdint>

namespace {

struct LessThan {
  uint32_t bound;
  __device__ bool operator()(uint32_t x) const { return x < bound; }
};

} // namespace

#define ALGORITHM(name, call)                                                                                          \
  extern "C" __attribute__((visibility("default"))) int cub_##name(void *storage, size_t *bytes,                       \
                                                                   void *const *buffers, size_t n, void *queue) {      \
    auto stream = static_cast<cudaStream_t>(queue);                                                                    \
    return call;                                                                                                       \
  }
#define BUFFER(type, i) static_cast<type *>(buffers[i])

#define NUMBERS(name, type)                                                                                            \
  ALGORITHM(reduce_##name,                                                                                             \
            cub::DeviceReduce::Sum(storage, *bytes, BUFFER(const type, 0), BUFFER(type, 1), n, stream))                \
  ALGORITHM(inclusive_scan_##name,                                                                                     \
            cub::DeviceScan::InclusiveSum(storage, *bytes, BUFFER(const type, 0), BUFFER(type, 1), n, stream))
NUMBERS(f32, float)
NUMBERS(f64, double)
NUMBERS(i32, int32_t)
NUMBERS(i64, int64_t)

ALGORITHM(select_u32, cub::DeviceSelect::If(storage, *bytes, BUFFER(const uint32_t, 0), BUFFER(uint32_t, 1),
                                            BUFFER(uint64_t, 2), n, LessThan{1u << 31}, stream))
ALGORITHM(reduce_by_key_u32_f32,
          cub::DeviceReduce::ReduceByKey(storage, *bytes, BUFFER(const uint32_t, 0), BUFFER(uint32_t, 2),
                                         BUFFER(const float, 1), BUFFER(float, 3), BUFFER(uint64_t, 4),
                                         cuda::std::plus<>{}, n, stream))
ALGORITHM(sort_keys_u32, cub::DeviceRadixSort::SortKeys(storage, *bytes, BUFFER(const uint32_t, 0), BUFFER(uint32_t, 1),
                                                        n, 0, 32, stream))
ALGORITHM(sort_keys_f32, cub::DeviceRadixSort::SortKeys(storage, *bytes, BUFFER(const float, 0), BUFFER(float, 1), n, 0,
                                                        32, stream))
ALGORITHM(sort_keys_u64, cub::DeviceRadixSort::SortKeys(storage, *bytes, BUFFER(const uint64_t, 0), BUFFER(uint64_t, 1),
                                                        n, 0, 64, stream))
ALGORITHM(sort_pairs_u32_u32,
          cub::DeviceRadixSort::SortPairs(storage, *bytes, BUFFER(const uint32_t, 0), BUFFER(uint32_t, 2),
                                          BUFFER(const uint32_t, 1), BUFFER(uint32_t, 3), n, 0, 32, stream))
