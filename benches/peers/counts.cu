// Histograms, reductions of segments, searches, and items moved or made.
#include "algorithms.cuh"

#include <cub/device/device_find.cuh>
#include <cuda/iterator>
#include <thrust/binary_search.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>
#include <thrust/tabulate.h>

// Bins and the ends of their range, as levels of type `L`, which the range's numbers are a divisor of.
#define HISTOGRAM(name, T, L)                                                                                          \
  CUB(histogram_even_##name,                                                                                           \
      cub::DeviceHistogram::HistogramEven(storage, *bytes, IN(T, 0), OUT(uint32_t, 1), static_cast<int>(NUMBER(2) + 1), \
                                          L(0), static_cast<L>(NUMBER(3)), n, stream))
HISTOGRAM(u8, uint8_t, int32_t)
HISTOGRAM(i32, int32_t, int32_t)
HISTOGRAM(f32, float, float)

#define SEGMENTS(name, T)                                                                                              \
  CUB(segmented_reduce_##name, cub::DeviceSegmentedReduce::Sum(storage, *bytes, IN(T, 0), OUT(T, 2), NUMBER(3),        \
                                                               IN(uint32_t, 1), IN(uint32_t, 1) + 1, stream))
SEGMENTS(i32, int32_t)
SEGMENTS(f32, float)
SEGMENTS(f64, double)

// Since CUB 3.5, and in a header of its own.
#if __has_include(<cub/device/device_segmented_scan.cuh>)
#include <cub/device/device_segmented_scan.cuh>
CUB(segmented_scan_u32,
    cub::DeviceSegmentedScan::InclusiveSegmentedSum(storage, *bytes, IN(uint32_t, 0), OUT(uint32_t, 2), IN(uint32_t, 1),
                                                    IN(uint32_t, 1) + 1, NUMBER(3), stream))
#endif

namespace {

struct Same {
  template <class T> __host__ __device__ T operator()(T x) const { return x; }
};

} // namespace

#define SEARCH(name, T)                                                                                                \
  CUB(lower_bound_##name, cub::DeviceFind::LowerBound(storage, *bytes, IN(T, 0), n, IN(T, 1), n, OUT(uint64_t, 2),     \
                                                      Less{}, cuda::stream_ref{stream}))                               \
  THRUST(lower_bound_##name,                                                                                           \
         thrust::lower_bound(policy, IN(T, 0), IN(T, 0) + n, IN(T, 1), IN(T, 1) + n, OUT(uint64_t, 2)))
SEARCH(u32, uint32_t)
SEARCH(u64, uint64_t)
SEARCH(f64, double)

CUB_TRANSFORM(gather_f32, cuda::permutation_iterator(IN(float, 0), IN(uint32_t, 1)), OUT(float, 2), n, Same{})
CUB_TRANSFORM(scatter_f32, IN(float, 0), cuda::permutation_iterator(OUT(float, 2), IN(uint32_t, 1)), n, Same{})
CUB_TRANSFORM(generate_u64, cuda::counting_iterator<uint64_t>(0), OUT(uint64_t, 0), n, Same{})

THRUST(gather_f32, thrust::gather(policy, IN(uint32_t, 1), IN(uint32_t, 1) + n, IN(float, 0), OUT(float, 2)))
THRUST(scatter_f32, thrust::scatter(policy, IN(float, 0), IN(float, 0) + n, IN(uint32_t, 1), OUT(float, 2)))
THRUST(generate_u64, thrust::tabulate(policy, OUT(uint64_t, 0), OUT(uint64_t, 0) + n, Same{}))
