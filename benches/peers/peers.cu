// The peers of the GPU benchmarks, as a shared library that the benchmark loads, so that both sides run in one process, on
// the same data and in turn. Built on the GPU machine:
//     nvcc -O3 -std=c++17 -arch=native --shared -Xcompiler -fPIC -o libpeers.so peers.cu
#include <cub/cub.cuh>
#include <cuda/std/tuple>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace {

struct Sum {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};

template <class T> int transform_add(const void *x, const void *y, void *out, size_t n, void *stream) {
  auto inputs = cuda::std::make_tuple(static_cast<const T *>(x), static_cast<const T *>(y));
  return cub::DeviceTransform::Transform(inputs, static_cast<T *>(out), n, Sum{}, static_cast<cudaStream_t>(stream));
}

// The temporary storage is the caller's; asked for with a null pointer.
template <class T> int reduce_sum(void *storage, size_t *bytes, const void *x, void *out, size_t n, void *stream) {
  return cub::DeviceReduce::Sum(storage, *bytes, static_cast<const T *>(x), static_cast<T *>(out), n,
                                static_cast<cudaStream_t>(stream));
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int cub_version() { return CUB_VERSION; }

#define TRANSFORM(name, type)                                                                                          \
  EXPORT int cub_transform_add_##name(const void *x, const void *y, void *out, size_t n, void *stream) {               \
    return transform_add<type>(x, y, out, n, stream);                                                                  \
  }
TRANSFORM(f32, float)
TRANSFORM(f64, double)
TRANSFORM(f16, __half)
TRANSFORM(bf16, __nv_bfloat16)

#define REDUCE(name, type)                                                                                             \
  EXPORT int cub_reduce_sum_##name(void *storage, size_t *bytes, const void *x, void *out, size_t n, void *stream) {   \
    return reduce_sum<type>(storage, bytes, x, out, n, stream);                                                        \
  }
REDUCE(f32, float)
REDUCE(f64, double)
