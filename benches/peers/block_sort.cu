// CUB's sorts of a block. As on the other side, a block loads its keys once, and scrambles and sorts them several times.
#include <cub/cub.cuh>

#include <cstdint>

namespace {

__device__ uint32_t scramble_bits(uint32_t bits) {
  uint32_t product = bits * 0x9e3779b1u;
  return product ^ product >> 15;
}

__device__ int32_t scramble(int32_t key) { return static_cast<int32_t>(scramble_bits(static_cast<uint32_t>(key))); }

__device__ float scramble(float key) {
  return __uint_as_float((scramble_bits(__float_as_uint(key)) & 0x807fffffu) | 0x3f800000u);
}

struct Less {
  template <class T> __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};

struct Radix {
  template <class K, int THREADS, int ITEMS> using Block = cub::BlockRadixSort<K, THREADS, ITEMS>;
  template <class Sort, class K, int ITEMS> static __device__ void sort(Sort block, K (&keys)[ITEMS]) {
    block.Sort(keys);
  }
};

struct Merge {
  template <class K, int THREADS, int ITEMS> using Block = cub::BlockMergeSort<K, THREADS, ITEMS>;
  template <class Sort, class K, int ITEMS> static __device__ void sort(Sort block, K (&keys)[ITEMS]) {
    block.StableSort(keys, Less{});
  }
};

// For so many blocks that a multiprocessor runs at once; for any number if it is 0.
template <class Method, class K, int THREADS, int ITEMS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) sort_tiles(const K *x, K *out, unsigned rounds) {
  using Sort = typename Method::template Block<K, THREADS, ITEMS>;
  __shared__ typename Sort::TempStorage storage;
  size_t tile = static_cast<size_t>(blockIdx.x) * THREADS * ITEMS;
  K keys[ITEMS];
  cub::LoadDirectBlockedVectorized(threadIdx.x, const_cast<K *>(x + tile), keys);
  for (unsigned round = 0; round < rounds; ++round) {
    for (int i = 0; i < ITEMS; ++i)
      keys[i] = scramble(keys[i]);
    __syncthreads();
    Method::sort(Sort(storage), keys);
  }
  cub::StoreDirectBlockedVectorized(threadIdx.x, out + tile, keys);
}

} // namespace

#define SORT_FOR(at_once, method, sort, name, type, threads, items)                                                    \
  extern "C" __attribute__((visibility("default"))) int                                                                \
      cub_block_##sort##_sort_##name##_##threads##_##items##_##at_once(const void *x, void *out, unsigned blocks,      \
                                                                       unsigned rounds, void *stream) {                \
    sort_tiles<method, type, threads, items, at_once / threads>                                                        \
        <<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(static_cast<const type *>(x),                      \
                                                                    static_cast<type *>(out), rounds);                 \
    return cudaGetLastError();                                                                                         \
  }
#define SORT(...)                                                                                                      \
  SORT_FOR(0, __VA_ARGS__)                                                                                             \
  SORT_FOR(896, __VA_ARGS__)                                                                                           \
  SORT_FOR(1024, __VA_ARGS__)
#define SHAPES(method, sort, name, type)                                                                               \
  SORT(method, sort, name, type, 128, 4)                                                                               \
  SORT(method, sort, name, type, 128, 8)                                                                               \
  SORT(method, sort, name, type, 256, 4)                                                                               \
  SORT(method, sort, name, type, 256, 8)
SHAPES(Radix, radix, f32, float)
SHAPES(Radix, radix, i32, int32_t)
SHAPES(Merge, merge, f32, float)
SHAPES(Merge, merge, i32, int32_t)
