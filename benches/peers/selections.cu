// Selections, partitions and unique items.
#include "algorithms.cuh"

#include <thrust/copy.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/partition.h>
#include <thrust/unique.h>

#define SELECTIONS(name, T)                                                                                            \
  CUB(select_##name, cub::DeviceSelect::If(storage, *bytes, IN(T, 0), OUT(T, 1), OUT(uint64_t, 2), n,                  \
                                           less_than<T>(NUMBER(3)), stream))                                           \
  THRUST(select_##name,                                                                                                \
         *OUT(uint64_t, 4) =                                                                                           \
             thrust::copy_if(policy, IN(T, 0), IN(T, 0) + n, OUT(T, 1), less_than<T>(NUMBER(3))) - OUT(T, 1))          \
  CUB(unique_##name,                                                                                                   \
      cub::DeviceSelect::Unique(storage, *bytes, IN(T, 0), OUT(T, 1), OUT(uint64_t, 2), n, stream))                    \
  THRUST(unique_##name,                                                                                                \
         *OUT(uint64_t, 3) = thrust::unique_copy(policy, IN(T, 0), IN(T, 0) + n, OUT(T, 1)) - OUT(T, 1))
SELECTIONS(i32, int32_t)
SELECTIONS(i64, int64_t)
SELECTIONS(u32, uint32_t)
SELECTIONS(f32, float)
SELECTIONS(f64, double)
SELECTIONS(f16, __half)

// The others are in reverse, from the end.
#define PARTITIONS(name, T)                                                                                            \
  CUB(partition_##name, cub::DevicePartition::If(storage, *bytes, IN(T, 0), OUT(T, 1), OUT(uint64_t, 2), n,            \
                                                 less_than<T>(NUMBER(3)), stream))                                     \
  THRUST(partition_##name,                                                                                             \
         auto ends = thrust::stable_partition_copy(policy, IN(T, 0), IN(T, 0) + n, OUT(T, 1),                          \
                                                   thrust::make_reverse_iterator(OUT(T, 1) + n),                       \
                                                   less_than<T>(NUMBER(3)));                                           \
         *OUT(uint64_t, 4) = ends.first - OUT(T, 1))
PARTITIONS(i32, int32_t)
PARTITIONS(u32, uint32_t)
PARTITIONS(f32, float)
