// What an expression's one kernel stands beside: CUB's transformations with the same functor, and a step of the Lorenz ensemble as a
// kernel written by hand.
#include "algorithms.cuh"

#include <cuda/std/tuple>

namespace {

struct Fused5 {
  __device__ float operator()(float b, float c, float d, float e, float f) const { return b + c * d + sinf(e) * f + 10.0f; }
};

struct Fused9 {
  __device__ float operator()(float b, float c, float d, float e, float f, float g, float h, float k) const {
    return (b + c * d + sinf(e) * f + 10.0f) - g * h / (k + 1.0f);
  }
};

__device__ void derivatives(double r, double x, double y, double z, double *d) {
  d[0] = (y - x) * 10.0;
  d[1] = r * x - y - x * z;
  d[2] = x * y - z * (8.0 / 3.0);
}

__global__ __launch_bounds__(256) void lorenz_step(const double *r, double *x, double *y, double *z, size_t n) {
  constexpr double dt = 0.01;
  size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double s[3] = {x[i], y[i], z[i]}, a[3], b[3], c[3], d[3];
  double p = r[i];
  derivatives(p, s[0], s[1], s[2], a);
  derivatives(p, s[0] + a[0] * (dt / 2), s[1] + a[1] * (dt / 2), s[2] + a[2] * (dt / 2), b);
  derivatives(p, s[0] + b[0] * (dt / 2), s[1] + b[1] * (dt / 2), s[2] + b[2] * (dt / 2), c);
  derivatives(p, s[0] + c[0] * dt, s[1] + c[1] * dt, s[2] + c[2] * dt, d);
  x[i] = s[0] + (a[0] + b[0] * 2 + c[0] * 2 + d[0]) * (dt / 6);
  y[i] = s[1] + (a[1] + b[1] * 2 + c[1] * 2 + d[1]) * (dt / 6);
  z[i] = s[2] + (a[2] + b[2] * 2 + c[2] * 2 + d[2]) * (dt / 6);
}

} // namespace

CUB(expression_2, storage == nullptr
                      ? (*bytes = 0, cudaSuccess)
                      : cub::DeviceTransform::Transform(cuda::std::make_tuple(IN(float, 0), IN(float, 1)), OUT(float, 2), n,
                                                        Plus{}, stream))
CUB(expression_5, storage == nullptr
                      ? (*bytes = 0, cudaSuccess)
                      : cub::DeviceTransform::Transform(
                            cuda::std::make_tuple(IN(float, 0), IN(float, 1), IN(float, 2), IN(float, 3), IN(float, 4)),
                            OUT(float, 5), n, Fused5{}, stream))
CUB(expression_9, storage == nullptr
                      ? (*bytes = 0, cudaSuccess)
                      : cub::DeviceTransform::Transform(
                            cuda::std::make_tuple(IN(float, 0), IN(float, 1), IN(float, 2), IN(float, 3), IN(float, 4),
                                                  IN(float, 5), IN(float, 6), IN(float, 7)),
                            OUT(float, 8), n, Fused9{}, stream))

PEER(cuda_lorenz) {
  if (storage == nullptr)
    return *bytes = 0;
  lorenz_step<<<unsigned((n + 255) / 256), 256, 0, static_cast<cudaStream_t>(queue)>>>(IN(double, 0), OUT(double, 1),
                                                                                       OUT(double, 2), OUT(double, 3), n);
  return cudaGetLastError();
}
