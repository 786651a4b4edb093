// Fourier transforms, by cuFFT. There are none without its header.
#if __has_include(<cufft.h>)
#include "algorithms.cuh"

#include <cufft.h>

#include <map>
#include <vector>

namespace {

// Buffers are the input and the output; then come how many transforms there are, how many axes, and their lengths. A call without
// memory makes the plan, which belongs to the two buffers and the lengths.
cufftResult transform(cufftType type, void *storage, size_t *bytes, void *const *buffers, void *queue) {
  static std::map<std::vector<intptr_t>, cufftHandle> plans;
  const int rank = static_cast<int>(NUMBER(3));
  std::vector<intptr_t> key{type, NUMBER(0), NUMBER(1), NUMBER(2)};
  std::vector<int> lengths;
  for (int axis = 0; axis < rank; ++axis) {
    key.push_back(NUMBER(4 + axis));
    lengths.push_back(static_cast<int>(NUMBER(4 + axis)));
  }
#define TRY(call)                                                                                                      \
  if (const cufftResult status = (call); status != CUFFT_SUCCESS)                                                      \
  return status
  if (storage == nullptr) {
    for (const auto &old : plans)
      TRY(cufftDestroy(old.second));
    plans.clear();
    cufftHandle plan;
    TRY(cufftCreate(&plan));
    TRY(cufftSetAutoAllocation(plan, 0));
    TRY(cufftMakePlanMany(plan, rank, lengths.data(), nullptr, 1, 0, nullptr, 1, 0, type, static_cast<int>(NUMBER(2)),
                          bytes));
    plans[key] = plan;
    return CUFFT_SUCCESS;
  }
  const cufftHandle plan = plans.at(key);
  TRY(cufftSetStream(plan, static_cast<cudaStream_t>(queue)));
  TRY(cufftSetWorkArea(plan, storage));
#undef TRY
  switch (type) {
  case CUFFT_C2C:
    return cufftExecC2C(plan, OUT(cufftComplex, 0), OUT(cufftComplex, 1), CUFFT_FORWARD);
  case CUFFT_Z2Z:
    return cufftExecZ2Z(plan, OUT(cufftDoubleComplex, 0), OUT(cufftDoubleComplex, 1), CUFFT_FORWARD);
  default:
    return cufftExecR2C(plan, OUT(cufftReal, 0), OUT(cufftComplex, 1));
  }
}

} // namespace

// As in peers.cu.
extern "C" __attribute__((visibility("default"))) int cufft_version() {
  int major = 0, minor = 0, patch = 0;
  cufftGetProperty(MAJOR_VERSION, &major);
  cufftGetProperty(MINOR_VERSION, &minor);
  cufftGetProperty(PATCH_LEVEL, &patch);
  return major * 100000 + minor * 100 + patch;
}

PEER(cufft_c2c_f32) { return transform(CUFFT_C2C, storage, bytes, buffers, queue); }
PEER(cufft_c2c_f64) { return transform(CUFFT_Z2Z, storage, bytes, buffers, queue); }
PEER(cufft_r2c_f32) { return transform(CUFFT_R2C, storage, bytes, buffers, queue); }
#endif
