// Radix sorts. Thrust sorts in place: it is given a copy, which counts.
#include "algorithms.cuh"

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
