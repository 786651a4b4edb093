// Merges, merge sorts and sorts of segments. Thrust's are in place: they are given a copy, which counts.
#include "algorithms.cuh"

#include <thrust/merge.h>
#include <thrust/sort.h>

#define MERGES(name, T)                                                                                                \
  CUB(merge_##name, cub::DeviceMerge::MergeKeys(storage, *bytes, IN(T, 0), n / 2, IN(T, 1), n - n / 2, OUT(T, 2),      \
                                                Less{}, stream))                                                       \
  THRUST(merge_##name,                                                                                                 \
         thrust::merge(policy, IN(T, 0), IN(T, 0) + n / 2, IN(T, 1), IN(T, 1) + (n - n / 2), OUT(T, 2), Less{}))       \
  CUB(sort_by_##name,                                                                                               \
      cub::DeviceMergeSort::StableSortKeysCopy(storage, *bytes, IN(T, 0), OUT(T, 1), n, Less{}, stream))               \
  THRUST(sort_by_##name,                                                                                            \
         cudaMemcpyAsync(OUT(T, 1), IN(T, 0), n * sizeof(T), cudaMemcpyDeviceToDevice, stream);                        \
         thrust::stable_sort(policy, OUT(T, 1), OUT(T, 1) + n, Less{}))
MERGES(u32, uint32_t)
MERGES(f32, float)
MERGES(i64, int64_t)

CUB(sort_pairs_by_u32_u32, cub::DeviceMergeSort::SortPairsCopy(storage, *bytes, IN(uint32_t, 0), IN(uint32_t, 1),
                                                               OUT(uint32_t, 2), OUT(uint32_t, 3), n, Less{}, stream))

CUB(segmented_sort_u32,
    cub::DeviceSegmentedSort::SortKeys(storage, *bytes, IN(uint32_t, 0), OUT(uint32_t, 2), n, NUMBER(3), IN(uint32_t, 1),
                                       IN(uint32_t, 1) + 1, stream))
CUB(other_segmented_sort_u32,
    cub::DeviceSegmentedRadixSort::SortKeys(storage, *bytes, IN(uint32_t, 0), OUT(uint32_t, 2), n, NUMBER(3),
                                            IN(uint32_t, 1), IN(uint32_t, 1) + 1, 0, 32, stream))
