// What stencils stand beside: a thread an element that reads each neighbour from global memory, and tiles with their halo in shared
// memory. Neighbours outside repeat the outermost element. The extents follow from the number of elements: a square, a cube, a row.
#include "algorithms.cuh"

#include <cmath>

namespace {

template <class T> __device__ T clamped(T x, T extent) { return x < 0 ? 0 : x >= extent ? extent - 1 : x; }

__global__ __launch_bounds__(256) void five_points(const float *x, float *y, int side) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  if (i >= side || j >= side)
    return;
  auto at = [&](int i, int j) { return x[size_t(clamped(i, side)) * side + clamped(j, side)]; };
  y[size_t(i) * side + j] = 0.25f * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1));
}

// 128 columns and 16 rows a block, four elements of a column a thread.
__global__ __launch_bounds__(512) void five_points_tiled(const float *x, float *y, int side) {
  constexpr int W = 128, H = 16;
  __shared__ float tile[H + 2][W + 2];
  int left = blockIdx.x * W - 1, top = blockIdx.y * H - 1;
  for (int k = threadIdx.x; k < (H + 2) * (W + 2); k += blockDim.x) {
    int i = k / (W + 2), j = k % (W + 2);
    tile[i][j] = x[size_t(clamped(top + i, side)) * side + clamped(left + j, side)];
  }
  __syncthreads();
  int j = threadIdx.x % W + 1;
  for (int i = threadIdx.x / W + 1; i <= H; i += 512 / W)
    if (top + i < side && left + j < side)
      y[size_t(top + i) * side + left + j] = 0.25f * (tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1]);
}

__global__ __launch_bounds__(256) void seven_points(const float *x, float *y, int side) {
  int k = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y, i = blockIdx.z;
  if (j >= side || k >= side)
    return;
  auto at = [&](int i, int j, int k) {
    return x[(size_t(clamped(i, side)) * side + clamped(j, side)) * side + clamped(k, side)];
  };
  y[(size_t(i) * side + j) * side + k] = at(i - 1, j, k) + at(i + 1, j, k) + at(i, j - 1, k) + at(i, j + 1, k) +
                                         at(i, j, k - 1) + at(i, j, k + 1) - 6.0f * at(i, j, k);
}

// 32 columns and 8 rows a block, which walks 32 planes with the planes before and after in registers.
__global__ __launch_bounds__(256) void seven_points_tiled(const float *x, float *y, int side) {
  constexpr int W = 32, H = 8, PLANES = 32;
  __shared__ float tile[2][H + 2][W + 2];
  int left = blockIdx.x * W - 1, top = blockIdx.y * H - 1, first = blockIdx.z * PLANES;
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  size_t plane = size_t(side) * side;
  size_t own = size_t(clamped(top + ty, side)) * side + clamped(left + tx, side);
  float before = x[clamped(first - 1, side) * plane + own], here = x[first * plane + own];
  for (int i = first; i < first + PLANES && i < side; ++i) {
    float(&now)[H + 2][W + 2] = tile[i % 2];
    for (int k = threadIdx.y * W + threadIdx.x; k < 2 * (W + H); k += W * H) {
      int r = k < 2 * W ? (k < W ? 0 : H + 1) : (k - 2 * W) / 2 + 1;
      int c = k < 2 * W ? k % W + 1 : (k % 2 == 0 ? 0 : W + 1);
      now[r][c] = x[i * plane + size_t(clamped(top + r, side)) * side + clamped(left + c, side)];
    }
    now[ty][tx] = here;
    float after = x[clamped(i + 1, side) * plane + own];
    __syncthreads();
    if (top + ty < side && left + tx < side)
      y[i * plane + own] =
          before + after + now[ty - 1][tx] + now[ty + 1][tx] + now[ty][tx - 1] + now[ty][tx + 1] - 6.0f * here;
    before = here;
    here = after;
  }
}

template <int N> struct Weights {
  float of[N];
};

template <int N> __global__ __launch_bounds__(256) void row(const float *x, float *y, ptrdiff_t n, Weights<N> weights) {
  ptrdiff_t i = ptrdiff_t(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n)
    return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < N; ++k)
    sum += weights.of[k] * x[clamped<ptrdiff_t>(i + k - N / 2, n)];
  y[i] = sum;
}

template <int N> __global__ __launch_bounds__(256) void row_tiled(const float *x, float *y, ptrdiff_t n, Weights<N> weights) {
  constexpr int TILE = 2048;
  __shared__ float tile[TILE + N - 1];
  ptrdiff_t start = ptrdiff_t(blockIdx.x) * TILE;
  for (int k = threadIdx.x; k < TILE + N - 1; k += 256)
    tile[k] = x[clamped<ptrdiff_t>(start + k - N / 2, n)];
  __syncthreads();
  for (int i = threadIdx.x; i < TILE && start + i < n; i += 256) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < N; ++k)
      sum += weights.of[k] * tile[i + k];
    y[start + i] = sum;
  }
}

template <int N> Weights<N> weights() {
  Weights<N> weights;
  for (int k = 0; k < N; ++k)
    weights.of[k] = float(k % 5) / 8;
  return weights;
}

// A thread an element, with the weights in global memory.
__global__ __launch_bounds__(256) void wide_row(const float *x, const float *w, float *y, ptrdiff_t n, int width) {
  ptrdiff_t i = ptrdiff_t(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n)
    return;
  float sum = 0;
  for (int k = 0; k < width; ++k)
    sum += w[k] * x[clamped<ptrdiff_t>(i + k - width / 2, n)];
  y[i] = sum;
}

unsigned over(size_t n, size_t of) { return unsigned((n + of - 1) / of); }

} // namespace

#define STENCIL(name, ...)                                                                                             \
  PEER(name) {                                                                                                         \
    if (storage == nullptr)                                                                                            \
      return *bytes = 0;                                                                                               \
    auto stream = static_cast<cudaStream_t>(queue);                                                                    \
    auto x = IN(float, 0);                                                                                             \
    auto y = OUT(float, 1);                                                                                            \
    __VA_ARGS__;                                                                                                       \
    return cudaGetLastError();                                                                                         \
  }

STENCIL(cuda_five_points, int side = int(std::lround(std::sqrt(double(n))));
        five_points<<<dim3(over(side, 32), over(side, 8)), dim3(32, 8), 0, stream>>>(x, y, side))
STENCIL(tiled_five_points, int side = int(std::lround(std::sqrt(double(n))));
        five_points_tiled<<<dim3(over(side, 128), over(side, 16)), 512, 0, stream>>>(x, y, side))
STENCIL(cuda_seven_points, int side = int(std::lround(std::cbrt(double(n))));
        seven_points<<<dim3(over(side, 32), over(side, 8), side), dim3(32, 8), 0, stream>>>(x, y, side))
STENCIL(tiled_seven_points, int side = int(std::lround(std::cbrt(double(n))));
        seven_points_tiled<<<dim3(over(side, 32), over(side, 8), over(side, 32)), dim3(32, 8), 0, stream>>>(x, y, side))
STENCIL(cuda_row_9, row<9><<<over(n, 256), 256, 0, stream>>>(x, y, n, weights<9>()))
STENCIL(tiled_row_9, row_tiled<9><<<over(n, 2048), 256, 0, stream>>>(x, y, n, weights<9>()))
STENCIL(cuda_row_33, row<33><<<over(n, 256), 256, 0, stream>>>(x, y, n, weights<33>()))
STENCIL(tiled_row_33, row_tiled<33><<<over(n, 2048), 256, 0, stream>>>(x, y, n, weights<33>()))
STENCIL(cuda_row_2048, wide_row<<<over(n, 256), 256, 0, stream>>>(x, IN(float, 2), y, n, 2048))
