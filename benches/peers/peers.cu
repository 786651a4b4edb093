// The peers of the GPU benchmarks, as a shared library that the benchmark loads, so that both sides run in one process, on
// the same data and in turn. `build.sh` builds it of all sources here; in this one are transformations and a block's reductions
// and scans.
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

// Collectives of a block, round after round on the same items; the kernels are those of `benches/gpu/kernels/block.rs`.
template <class T, int THREADS, int ITEMS, cub::BlockReduceAlgorithm ALGORITHM>
__global__ __launch_bounds__(THREADS, 2048 / THREADS) void
block_reduce_to_first(unsigned rounds, T zero, const T *x, T *out) {
  using Reduce = cub::BlockReduce<T, THREADS, ALGORITHM>;
  __shared__ typename Reduce::TempStorage storage;
  size_t start = size_t(blockIdx.x) * THREADS * ITEMS;
  T items[ITEMS], total = 0;
  cub::LoadDirectBlockedVectorized(threadIdx.x, const_cast<T *>(x) + start, items);
  for (unsigned round = 0; round < rounds; ++round) {
    total = Reduce(storage).Sum(items);
    if (threadIdx.x == 0)
      items[0] += total * zero;
    __syncthreads();
  }
  if (threadIdx.x == 0)
    items[0] = total;
  cub::StoreDirectBlockedVectorized(threadIdx.x, out + start, items);
}

template <class T, int THREADS, int ITEMS, cub::BlockReduceAlgorithm ALGORITHM>
__global__ __launch_bounds__(THREADS, 2048 / THREADS) void
block_reduce(unsigned rounds, T zero, const T *x, T *out) {
  using Reduce = cub::BlockReduce<T, THREADS, ALGORITHM>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ T result;
  size_t start = size_t(blockIdx.x) * THREADS * ITEMS;
  T items[ITEMS], total = 0;
  cub::LoadDirectBlockedVectorized(threadIdx.x, const_cast<T *>(x) + start, items);
  for (unsigned round = 0; round < rounds; ++round) {
    total = Reduce(storage).Sum(items);
    if (threadIdx.x == 0)
      result = total;
    __syncthreads(); // Also what the storage's reuse needs; the next round's barrier inside protects `result`.
    total = result;
    items[0] += total * zero;
  }
  items[0] = total;
  cub::StoreDirectBlockedVectorized(threadIdx.x, out + start, items);
}

template <class T, int THREADS, int ITEMS, cub::BlockScanAlgorithm ALGORITHM>
__global__ __launch_bounds__(THREADS, 2048 / THREADS) void block_scan(unsigned rounds, T scale, const T *x, T *out) {
  using Scan = cub::BlockScan<T, THREADS, ALGORITHM>;
  __shared__ typename Scan::TempStorage storage;
  size_t start = size_t(blockIdx.x) * THREADS * ITEMS;
  T items[ITEMS];
  cub::LoadDirectBlockedVectorized(threadIdx.x, const_cast<T *>(x) + start, items);
  for (unsigned round = 0; round < rounds; ++round) {
    Scan(storage).InclusiveSum(items, items);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
      items[i] *= scale;
    __syncthreads();
  }
  cub::StoreDirectBlockedVectorized(threadIdx.x, out + start, items);
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Versions as CUB has them: digits of the major one, three of the minor one, and two of the patch.
EXPORT int cub_version() { return CUB_VERSION; }
EXPORT int cuda_version() { return CUDART_VERSION / 1000 * 100000 + CUDART_VERSION % 1000 / 10 * 100; }

#define TRANSFORM(name, type)                                                                                          \
  EXPORT int cub_transform_add_##name(const void *x, const void *y, void *out, size_t n, void *stream) {               \
    return transform_add<type>(x, y, out, n, stream);                                                                  \
  }
TRANSFORM(f32, float)
TRANSFORM(f64, double)
TRANSFORM(f16, __half)
TRANSFORM(bf16, __nv_bfloat16)

#define BLOCK_KERNEL(kind, name, type, threads, items, ...)                                                            \
  EXPORT int cub_block_##kind##_##name##_##threads##_##items(unsigned rounds, type factor, const void *x, void *out,   \
                                                             size_t n, void *stream) {                                 \
    __VA_ARGS__<<<n / (threads * items), threads, 0, static_cast<cudaStream_t>(stream)>>>(                             \
        rounds, factor, static_cast<const type *>(x), static_cast<type *>(out));                                       \
    return cudaGetLastError();                                                                                         \
  }
#define REDUCE(kind, algorithm, name, type, threads, items)                                                            \
  BLOCK_KERNEL(reduce_to_first_##kind, name, type, threads, items,                                                     \
               block_reduce_to_first<type, threads, items, cub::algorithm>)                                            \
  BLOCK_KERNEL(reduce_##kind, name, type, threads, items, block_reduce<type, threads, items, cub::algorithm>)
#define SCAN(kind, algorithm, name, type, threads, items)                                                              \
  BLOCK_KERNEL(scan_##kind, name, type, threads, items, block_scan<type, threads, items, cub::algorithm>)
#define BLOCK(name, type, threads, items)                                                                              \
  REDUCE(warps, BLOCK_REDUCE_WARP_REDUCTIONS, name, type, threads, items)                                              \
  REDUCE(atomics, BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC, name, type, threads, items)                           \
  REDUCE(raking, BLOCK_REDUCE_RAKING, name, type, threads, items)                                                      \
  REDUCE(commutative, BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, name, type, threads, items)                                \
  SCAN(warps, BLOCK_SCAN_WARP_SCANS, name, type, threads, items)                                                       \
  SCAN(raking, BLOCK_SCAN_RAKING, name, type, threads, items)                                                          \
  SCAN(memoize, BLOCK_SCAN_RAKING_MEMOIZE, name, type, threads, items)
BLOCK(f32, float, 128, 4)
BLOCK(f32, float, 128, 8)
BLOCK(f32, float, 256, 4)
BLOCK(f32, float, 256, 8)
BLOCK(i32, int, 128, 4)
BLOCK(i32, int, 128, 8)
BLOCK(i32, int, 256, 4)
BLOCK(i32, int, 256, 8)
