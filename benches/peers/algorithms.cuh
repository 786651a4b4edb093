// What CUB's and Thrust's algorithms over whole buffers have in common: how they are called from benches/gpu/peers.rs.
//
// A function is named after who made it (`cub_other` is another one of CUB's for the same, of which the faster one counts), the
// algorithm and its types, and is given the buffers in an array, inputs before outputs,
// with numbers among them where an algorithm has some. CUB's temporary memory is the caller's, who asks for its size with a null
// pointer. Thrust takes its own in each call, and returns a result to the host where its interface says so: to what the last
// buffer points to.
#pragma once

#include <cub/cub.cuh>
#include <cuda_fp16.h>
#include <thrust/execution_policy.h>

#include <cstdint>

#define PEER(name)                                                                                                     \
  extern "C" __attribute__((visibility("default"))) int name(void *storage, size_t *bytes, void *const *buffers,       \
                                                             size_t n, void *queue)

// A call that returns CUDA's error. The count is an `int`, as most programs have it: with 64 bits, some of CUB's kernels are slower.
#define CUB(name, ...)                                                                                                 \
  PEER(cub_##name) {                                                                                                   \
    if (n > INT32_MAX)                                                                                                 \
      return cudaErrorInvalidValue;                                                                                    \
    return [&](int n, cudaStream_t stream) -> int { return __VA_ARGS__; }(static_cast<int>(n),                         \
                                                                          static_cast<cudaStream_t>(queue));           \
  }

// The same of a transformation, which takes no temporary memory.
#define CUB_TRANSFORM(name, ...)                                                                                       \
  CUB(name, storage == nullptr ? (*bytes = 0, cudaSuccess) : cub::DeviceTransform::Transform(__VA_ARGS__, stream))

// Statements that throw their errors.
#define THRUST(name, ...)                                                                                              \
  PEER(thrust_##name) {                                                                                                \
    if (storage == nullptr)                                                                                            \
      return *bytes = 0;                                                                                               \
    auto stream = static_cast<cudaStream_t>(queue);                                                                    \
    auto policy = thrust::cuda::par_nosync.on(stream);                                                                 \
    try {                                                                                                              \
      __VA_ARGS__;                                                                                                     \
    } catch (...) {                                                                                                    \
      return cudaErrorUnknown;                                                                                         \
    }                                                                                                                  \
    return cudaSuccess;                                                                                                \
  }

// The buffer, or the number, that stands there in the array.
#define IN(type, i) static_cast<const type *>(buffers[i])
#define OUT(type, i) static_cast<type *>(buffers[i])
#define NUMBER(i) reinterpret_cast<intptr_t>(buffers[i])

namespace {

struct Plus {
  template <class T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};

struct Minus {
  template <class T> __host__ __device__ T operator()(T a, T b) const { return a - b; }
};

struct Less {
  template <class T> __host__ __device__ bool operator()(T a, T b) const { return a < b; }
};

template <class T> struct LessThan {
  T bound;
  __host__ __device__ bool operator()(T x) const { return x < bound; }
};

// The bound is the number at a place in the array.
template <class T> LessThan<T> less_than(intptr_t bound) { return {static_cast<T>(static_cast<float>(bound))}; }

} // namespace
