// Runs of equal keys.
#include "algorithms.cuh"

#include <thrust/functional.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>

#define RUNS(name, T)                                                                                                  \
  CUB(run_length_encode_##name,                                                                                        \
      cub::DeviceRunLengthEncode::Encode(storage, *bytes, IN(T, 0), OUT(T, 1), OUT(uint32_t, 2), OUT(uint64_t, 3), n,  \
                                         stream))                                                                      \
  THRUST(run_length_encode_##name,                                                                                     \
         *OUT(uint64_t, 4) = thrust::reduce_by_key(policy, IN(T, 0), IN(T, 0) + n,                                     \
                                                   thrust::make_constant_iterator(uint32_t(1)), OUT(T, 1),             \
                                                   OUT(uint32_t, 2))                                                   \
                                 .first -                                                                              \
                             OUT(T, 1))
RUNS(i32, int32_t)
RUNS(u32, uint32_t)
RUNS(u64, uint64_t)
RUNS(f32, float)

#define BY_KEY(name, K, V)                                                                                             \
  CUB(reduce_by_key_##name,                                                                                            \
      cub::DeviceReduce::ReduceByKey(storage, *bytes, IN(K, 0), OUT(K, 2), IN(V, 1), OUT(V, 3), OUT(uint64_t, 4),      \
                                     cuda::std::plus<>{}, n, stream))                                                  \
  THRUST(reduce_by_key_##name,                                                                                         \
         *OUT(uint64_t, 5) =                                                                                           \
             thrust::reduce_by_key(policy, IN(K, 0), IN(K, 0) + n, IN(V, 1), OUT(K, 2), OUT(V, 3)).first - OUT(K, 2))
BY_KEY(u32_f32, uint32_t, float)
BY_KEY(u32_f64, uint32_t, double)
BY_KEY(i32_f32, int32_t, float)
BY_KEY(u64_u32, uint64_t, uint32_t)

#define SCAN_BY_KEY(name, K, V)                                                                                        \
  CUB(scan_by_key_##name, cub::DeviceScan::InclusiveSumByKey(storage, *bytes, IN(K, 0), IN(V, 1), OUT(V, 2), n,        \
                                                             cuda::std::equal_to<>{}, stream))                         \
  THRUST(scan_by_key_##name,                                                                                           \
         thrust::inclusive_scan_by_key(policy, IN(K, 0), IN(K, 0) + n, IN(V, 1), OUT(V, 2)))
SCAN_BY_KEY(u32_f32, uint32_t, float)
SCAN_BY_KEY(u32_u32, uint32_t, uint32_t)
