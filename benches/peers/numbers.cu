// Transformations, reductions, scans and differences.
#include "algorithms.cuh"

#include <cuda/functional>
#include <cuda/std/tuple>
#include <thrust/adjacent_difference.h>
#include <thrust/fill.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform.h>

namespace {

template <class T> struct Value {
  T value;
  __device__ T operator()() const { return value; }
};

template <class T> T value_of(intptr_t number) { return static_cast<T>(static_cast<float>(number)); }

} // namespace

// For elements of type `T`, which are added up in type `S`.
#define NUMBERS(name, T, S)                                                                                            \
  CUB_TRANSFORM(transform_##name, cuda::std::make_tuple(IN(T, 0), IN(T, 1)), OUT(T, 2), n, Plus{})                     \
  THRUST(transform_##name, thrust::transform(policy, IN(T, 0), IN(T, 0) + n, IN(T, 1), OUT(T, 2),                      \
                                             cuda::proclaim_copyable_arguments(Plus{})))                               \
  CUB_TRANSFORM(fill_##name, cuda::std::tuple<>{}, OUT(T, 0), n, Value<T>{value_of<T>(NUMBER(1))})                     \
  THRUST(fill_##name, thrust::fill(policy, OUT(T, 0), OUT(T, 0) + n, value_of<T>(NUMBER(1))))                          \
  CUB(reduce_##name,                                                                                                   \
      cub::DeviceReduce::Reduce(storage, *bytes, IN(T, 0), OUT(S, 1), n, cuda::std::plus<S>{}, S(0), stream))          \
  THRUST(reduce_##name, *OUT(S, 2) = thrust::reduce(policy, IN(T, 0), IN(T, 0) + n, S(0), cuda::std::plus<S>{}))          \
  CUB(inclusive_scan_##name, cub::DeviceScan::InclusiveSum(storage, *bytes, IN(T, 0), OUT(T, 1), n, stream))           \
  THRUST(inclusive_scan_##name, thrust::inclusive_scan(policy, IN(T, 0), IN(T, 0) + n, OUT(T, 1), cuda::std::plus<T>{}))  \
  CUB(exclusive_scan_##name, cub::DeviceScan::ExclusiveSum(storage, *bytes, IN(T, 0), OUT(T, 1), n, stream))           \
  THRUST(exclusive_scan_##name,                                                                                        \
         thrust::exclusive_scan(policy, IN(T, 0), IN(T, 0) + n, OUT(T, 1), T(0.0f), cuda::std::plus<T>{}))                \
  CUB(adjacent_difference_##name, cub::DeviceAdjacentDifference::SubtractLeftCopy(storage, *bytes, IN(T, 0),           \
                                                                                  OUT(T, 1), n, Minus{}, stream))      \
  THRUST(adjacent_difference_##name,                                                                                   \
         thrust::adjacent_difference(policy, IN(T, 0), IN(T, 0) + n, OUT(T, 1), Minus{}))
NUMBERS(i32, int32_t, int32_t)
NUMBERS(i64, int64_t, int64_t)
NUMBERS(f32, float, float)
NUMBERS(f64, double, double)
NUMBERS(f16, __half, float)
