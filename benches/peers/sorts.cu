// Radix sorts. Thrust sorts in place: it is given a copy, which counts.
#include "algorithms.cuh"

#include <cub/device/device_topk.cuh>
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/output_ordering.h>
#include <cuda/__execution/require.h>
#include <thrust/sort.h>

#define COPY(T, to, from) cudaMemcpyAsync(OUT(T, to), IN(T, from), n * sizeof(T), cudaMemcpyDeviceToDevice, stream)

#define SORT_KEYS(name, T)                                                                                             \
  CUB(sort_keys_##name, cub::DeviceRadixSort::SortKeys(storage, *bytes, IN(T, 0), OUT(T, 1), n, 0, sizeof(T) * 8,      \
                                                       stream))                                                        \
  THRUST(sort_keys_##name, COPY(T, 1, 0); thrust::sort(policy, OUT(T, 1), OUT(T, 1) + n))
SORT_KEYS(i32, int32_t)
SORT_KEYS(u32, uint32_t)
SORT_KEYS(i64, int64_t)
SORT_KEYS(u64, uint64_t)
SORT_KEYS(f32, float)
SORT_KEYS(f64, double)
SORT_KEYS(f16, __half)

#define SORT_PAIRS(name, K, V)                                                                                         \
  CUB(sort_pairs_##name, cub::DeviceRadixSort::SortPairs(storage, *bytes, IN(K, 0), OUT(K, 2), IN(V, 1), OUT(V, 3), n, \
                                                         0, sizeof(K) * 8, stream))                                    \
  THRUST(sort_pairs_##name, COPY(K, 2, 0); COPY(V, 3, 1);                                                              \
         thrust::stable_sort_by_key(policy, OUT(K, 2), OUT(K, 2) + n, OUT(V, 3)))
SORT_PAIRS(u32_u32, uint32_t, uint32_t)
SORT_PAIRS(f32_u32, float, uint32_t)
SORT_PAIRS(u64_u32, uint64_t, uint32_t)

// The first few have no order: they are sorted, too, which counts.
CUB(top_k_f32, [&]() -> cudaError_t {
  auto k = static_cast<int>(NUMBER(2));
  auto requirements = cuda::execution::require(cuda::execution::determinism::not_guaranteed,
                                               cuda::execution::output_ordering::unsorted);
  auto env = cuda::std::execution::env{cuda::stream_ref{stream}, requirements};
  // The memory has the unsorted keys before that of both.
  size_t keys = (size_t(k) * sizeof(float) + 255) / 256 * 256, find = 0, sort = 0;
  auto *unsorted = static_cast<float *>(storage);
  auto *memory = storage == nullptr ? nullptr : static_cast<char *>(storage) + keys;
  if (storage != nullptr)
    find = sort = *bytes - keys;
  if (auto error = cub::DeviceTopK::MaxKeys(memory, find, IN(float, 0), unsorted, n, k, env))
    return error;
  if (auto error = cub::DeviceRadixSort::SortKeysDescending(memory, sort, unsorted, OUT(float, 1), k, 0, 32, stream))
    return error;
  if (storage == nullptr)
    *bytes = keys + (find > sort ? find : sort);
  return cudaSuccess;
}())
