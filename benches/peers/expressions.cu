// What an expression's one kernel stands beside: CUB's transformations with the same functor, and a step of the Lorenz ensemble as a
// kernel written by hand.
#include "algorithms.cuh"

#include <cuda/functional>
#include <cuda/iterator>
#include <cuda/std/functional>
#include <cuda/std/tuple>
#include <thrust/tuple.h>
#include <thrust/device_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/transform.h>

#include <map>

namespace {

struct Fused5 {
  __device__ float operator()(float b, float c, float d, float e, float f) const { return b + c * d + sinf(e) * f + 10.0f; }
};

struct Fused9 {
  __device__ float operator()(float b, float c, float d, float e, float f, float g, float h, float k) const {
    return (b + c * d + sinf(e) * f + 10.0f) - g * h / (k + 1.0f);
  }
};

struct Product {
  template <class Pair> __host__ __device__ float operator()(Pair pair) const {
    return cuda::std::get<0>(pair) * cuda::std::get<1>(pair);
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

// The same by Thrust, as odeint does it: a transformation for the derivatives of each stage, and one for each sum of states. Functors that
// may be given copies of the elements let Thrust take its faster kernels.
using cuda::proclaim_copyable_arguments;

struct Derivatives {
  template <class Tuple> __device__ cuda::std::tuple<double, double, double> operator()(Tuple t) const {
    double d[3];
    derivatives(thrust::get<0>(t), thrust::get<1>(t), thrust::get<2>(t), thrust::get<3>(t), d);
    return {d[0], d[1], d[2]};
  }
};

struct Along {
  double h;
  __device__ double operator()(double x, double k) const { return x + k * h; }
};

struct Advance {
  template <class Tuple> __device__ double operator()(Tuple t) const {
    return thrust::get<0>(t) +
           (thrust::get<1>(t) + thrust::get<2>(t) * 2 + thrust::get<3>(t) * 2 + thrust::get<4>(t)) * (0.01 / 6);
  }
};

// Of an ensemble of a size: the argument of a stage, and four stages, of three states each.
struct Stages {
  thrust::device_vector<double> memory;
  explicit Stages(size_t n) : memory(15 * n) {}
};

template <class Policy> void lorenz_by_thrust(Policy policy, const double *r, double *const *state, size_t n) {
  static std::map<size_t, Stages> all;
  double *memory = thrust::raw_pointer_cast(all.try_emplace(n, n).first->second.memory.data());
  double *argument = memory, *stages = memory + 3 * n;
  const double dt = 0.01, ahead[4] = {0, dt / 2, dt / 2, dt};
  for (int stage = 0; stage < 4; ++stage) {
    const double *x[3];
    for (int axis = 0; axis < 3; ++axis) {
      x[axis] = state[axis];
      if (stage > 0) {
        const double *before = stages + (3 * (stage - 1) + axis) * n;
        thrust::transform(policy, state[axis], state[axis] + n, before, argument + axis * n,
                          proclaim_copyable_arguments(Along{ahead[stage]}));
        x[axis] = argument + axis * n;
      }
    }
    double *k = stages + 3 * stage * n;
    auto from = thrust::make_zip_iterator(r, x[0], x[1], x[2]);
    thrust::transform(policy, from, from + n, thrust::make_zip_iterator(k, k + n, k + 2 * n),
                      proclaim_copyable_arguments(Derivatives{}));
  }
  for (int axis = 0; axis < 3; ++axis) {
    const double *k = stages + axis * n;
    auto from = thrust::make_zip_iterator(state[axis], k, k + 3 * n, k + 6 * n, k + 9 * n);
    thrust::transform(policy, from, from + n, state[axis], proclaim_copyable_arguments(Advance{}));
  }
}

} // namespace

THRUST(lorenz, double *state[3] = {OUT(double, 1), OUT(double, 2), OUT(double, 3)};
       lorenz_by_thrust(policy, IN(double, 0), state, n))

CUB_TRANSFORM(expression_2, cuda::std::make_tuple(IN(float, 0), IN(float, 1)), OUT(float, 2), n, Plus{})
CUB_TRANSFORM(expression_5, cuda::std::make_tuple(IN(float, 0), IN(float, 1), IN(float, 2), IN(float, 3), IN(float, 4)),
              OUT(float, 5), n, Fused5{})
CUB_TRANSFORM(expression_9,
              cuda::std::make_tuple(IN(float, 0), IN(float, 1), IN(float, 2), IN(float, 3), IN(float, 4), IN(float, 5),
                                    IN(float, 6), IN(float, 7)),
              OUT(float, 8), n, Fused9{})

CUB(dot_f32, cub::DeviceReduce::TransformReduce(storage, *bytes, cuda::zip_iterator(IN(float, 0), IN(float, 1)), OUT(float, 2), n,
                                                cuda::std::plus<>{}, Product{}, 0.0f, stream))

PEER(cuda_lorenz) {
  if (storage == nullptr)
    return *bytes = 0;
  lorenz_step<<<unsigned((n + 255) / 256), 256, 0, static_cast<cudaStream_t>(queue)>>>(IN(double, 0), OUT(double, 1),
                                                                                       OUT(double, 2), OUT(double, 3), n);
  return cudaGetLastError();
}
