// Products of sparse matrices in compressed rows and vectors, by cuSPARSE. There are none without its header.
#if __has_include(<cusparse.h>)
#include "algorithms.cuh"

#include <cusparse.h>

#include <map>
#include <tuple>

namespace {

// What a product keeps from call to call.
struct Product {
  cusparseSpMatDescr_t a = nullptr;
  cusparseDnVecDescr_t x = nullptr, y = nullptr;
  bool ready = false;
};

// The buffers are offsets, columns and values, x and y, and the numbers of columns and of entries and the algorithm come after
// them. A call without memory describes the product; the first one with memory prepares it.
template <class T> cusparseStatus_t spmv(void *storage, size_t *bytes, void *const *buffers, size_t rows, void *queue) {
  static cusparseHandle_t handle = nullptr;
  static std::map<std::tuple<void *, void *, intptr_t>, Product> products;
  const T alpha = 1, beta = 0;
  const auto type = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
  const auto plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  const auto algorithm = static_cast<cusparseSpMVAlg_t>(NUMBER(7));
#define TRY(call)                                                                                                      \
  if (const cusparseStatus_t status = (call); status != CUSPARSE_STATUS_SUCCESS)                                       \
  return status
  if (handle == nullptr)
    TRY(cusparseCreate(&handle));
  TRY(cusparseSetStream(handle, static_cast<cudaStream_t>(queue)));
  Product &product = products[{buffers[2], buffers[4], NUMBER(7)}];
  if (storage == nullptr) {
    if (product.a != nullptr) {
      TRY(cusparseDestroySpMat(product.a));
      TRY(cusparseDestroyDnVec(product.x));
      TRY(cusparseDestroyDnVec(product.y));
    }
    product = Product{};
    TRY(cusparseCreateCsr(&product.a, rows, NUMBER(5), NUMBER(6), buffers[0], buffers[1], buffers[2], CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
    TRY(cusparseCreateDnVec(&product.x, NUMBER(5), buffers[3], type));
    TRY(cusparseCreateDnVec(&product.y, rows, buffers[4], type));
    return cusparseSpMV_bufferSize(handle, plain, &alpha, product.a, product.x, &beta, product.y, type, algorithm, bytes);
  }
#if CUSPARSE_VERSION >= 12300
  if (!product.ready)
    TRY(cusparseSpMV_preprocess(handle, plain, &alpha, product.a, product.x, &beta, product.y, type, algorithm, storage));
#endif
  product.ready = true;
  return cusparseSpMV(handle, plain, &alpha, product.a, product.x, &beta, product.y, type, algorithm, storage);
#undef TRY
}

} // namespace

PEER(cusparse_spmv_f32) { return spmv<float>(storage, bytes, buffers, n, queue); }
PEER(cusparse_spmv_f64) { return spmv<double>(storage, bytes, buffers, n, queue); }
#endif
