// Products of sparse matrices and vectors by cuSPARSE: of compressed rows, of triplets, of slices, and with several vectors. There are none
// without its header.
#if __has_include(<cusparse.h>)
#include "algorithms.cuh"

#include <cusparse.h>

#include <map>
#include <tuple>

namespace {

#define TRY(call)                                                                                                      \
  if (const cusparseStatus_t status = (call); status != CUSPARSE_STATUS_SUCCESS)                                       \
  return status

const auto INDEX = CUSPARSE_INDEX_32I;
const auto PLAIN = CUSPARSE_OPERATION_NON_TRANSPOSE;

// Rows of a slice.
constexpr int SLICE = 32;

template <class T> constexpr cudaDataType TYPE = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;

cusparseStatus_t handle_on(void *queue, cusparseHandle_t *handle) {
  static cusparseHandle_t one = nullptr;
  if (one == nullptr)
    TRY(cusparseCreate(&one));
  *handle = one;
  return cusparseSetStream(one, static_cast<cudaStream_t>(queue));
}

// What a product keeps from call to call.
struct Product {
  cusparseSpMatDescr_t a = nullptr;
  cusparseDnVecDescr_t x = nullptr, y = nullptr;
  bool ready = false;
};

// The algorithms by number: their formats, in which the first buffer has offsets of rows, rows of entries, or offsets of slices.
enum Format { ROWS, TRIPLETS, SLICES };
constexpr Format FORMATS[] = {ROWS, ROWS, TRIPLETS, TRIPLETS, SLICES};
constexpr cusparseSpMVAlg_t ALGORITHMS[] = {
    CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2, CUSPARSE_SPMV_COO_ALG1, CUSPARSE_SPMV_COO_ALG2,
#if CUSPARSE_VERSION >= 12300
    CUSPARSE_SPMV_SELL_ALG1,
#endif
};

// The buffers are three of the matrix, the last two of which have columns and values, x and y. The numbers of columns and of entries, the
// algorithm's, and the number of slots come after them. A call without memory describes the product; the first one with memory prepares it.
template <class T> cusparseStatus_t spmv(void *storage, size_t *bytes, void *const *buffers, size_t rows, void *queue) {
  static std::map<std::tuple<void *, void *, intptr_t>, Product> products;
  cusparseHandle_t handle;
  TRY(handle_on(queue, &handle));
  const T alpha = 1, beta = 0;
  const auto type = TYPE<T>;
  const auto columns = NUMBER(5), entries = NUMBER(6);
  const auto algorithm = ALGORITHMS[NUMBER(7)];
  const auto base = CUSPARSE_INDEX_BASE_ZERO;
  Product &product = products[{buffers[2], buffers[4], NUMBER(7)}];
  if (storage == nullptr) {
    if (product.a != nullptr) {
      TRY(cusparseDestroySpMat(product.a));
      TRY(cusparseDestroyDnVec(product.x));
      TRY(cusparseDestroyDnVec(product.y));
    }
    product = Product{};
    switch (FORMATS[NUMBER(7)]) {
    case ROWS:
      TRY(cusparseCreateCsr(&product.a, rows, columns, entries, buffers[0], buffers[1], buffers[2], INDEX, INDEX, base, type));
      break;
    case TRIPLETS:
      TRY(cusparseCreateCoo(&product.a, rows, columns, entries, buffers[0], buffers[1], buffers[2], INDEX, base, type));
      break;
    case SLICES:
#if CUSPARSE_VERSION >= 12300
      TRY(cusparseCreateSlicedEll(&product.a, rows, columns, entries, NUMBER(8), SLICE, buffers[0], buffers[1], buffers[2],
                                  INDEX, INDEX, base, type));
#endif
      break;
    }
    TRY(cusparseCreateDnVec(&product.x, columns, buffers[3], type));
    TRY(cusparseCreateDnVec(&product.y, rows, buffers[4], type));
    return cusparseSpMV_bufferSize(handle, PLAIN, &alpha, product.a, product.x, &beta, product.y, type, algorithm, bytes);
  }
#if CUSPARSE_VERSION >= 12300
  if (!product.ready)
    TRY(cusparseSpMV_preprocess(handle, PLAIN, &alpha, product.a, product.x, &beta, product.y, type, algorithm, storage));
#endif
  product.ready = true;
  return cusparseSpMV(handle, PLAIN, &alpha, product.a, product.x, &beta, product.y, type, algorithm, storage);
}

// What a product with several vectors keeps.
struct Products {
  cusparseSpMatDescr_t a = nullptr;
  cusparseDnMatDescr_t x = nullptr, y = nullptr;
  bool ready = false;
};

// The algorithms by number: those of compressed rows, and those of triplets.
constexpr intptr_t OF_ROWS = 3;
constexpr cusparseSpMMAlg_t SEVERAL[] = {
    CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3, CUSPARSE_SPMM_COO_ALG1,
    CUSPARSE_SPMM_COO_ALG2, CUSPARSE_SPMM_COO_ALG3, CUSPARSE_SPMM_COO_ALG4,
};

// As `spmv`, but not of slices; the last number is that of the vectors, which lie in rows.
template <class T> cusparseStatus_t spmm(void *storage, size_t *bytes, void *const *buffers, size_t rows, void *queue) {
  static std::map<std::tuple<void *, void *, intptr_t>, Products> products;
  cusparseHandle_t handle;
  TRY(handle_on(queue, &handle));
  const T alpha = 1, beta = 0;
  const auto type = TYPE<T>;
  const auto columns = NUMBER(5), entries = NUMBER(6), vectors = NUMBER(8);
  const auto algorithm = SEVERAL[NUMBER(7)];
  const auto base = CUSPARSE_INDEX_BASE_ZERO;
  Products &product = products[{buffers[2], buffers[4], NUMBER(7)}];
  if (storage == nullptr) {
    if (product.a != nullptr) {
      TRY(cusparseDestroySpMat(product.a));
      TRY(cusparseDestroyDnMat(product.x));
      TRY(cusparseDestroyDnMat(product.y));
    }
    product = Products{};
    if (NUMBER(7) < OF_ROWS) {
      TRY(cusparseCreateCsr(&product.a, rows, columns, entries, buffers[0], buffers[1], buffers[2], INDEX, INDEX, base, type));
    } else {
      TRY(cusparseCreateCoo(&product.a, rows, columns, entries, buffers[0], buffers[1], buffers[2], INDEX, base, type));
    }
    TRY(cusparseCreateDnMat(&product.x, columns, vectors, vectors, buffers[3], type, CUSPARSE_ORDER_ROW));
    TRY(cusparseCreateDnMat(&product.y, rows, vectors, vectors, buffers[4], type, CUSPARSE_ORDER_ROW));
    return cusparseSpMM_bufferSize(handle, PLAIN, PLAIN, &alpha, product.a, product.x, &beta, product.y, type, algorithm, bytes);
  }
  if (!product.ready)
    TRY(cusparseSpMM_preprocess(handle, PLAIN, PLAIN, &alpha, product.a, product.x, &beta, product.y, type, algorithm, storage));
  product.ready = true;
  return cusparseSpMM(handle, PLAIN, PLAIN, &alpha, product.a, product.x, &beta, product.y, type, algorithm, storage);
}
#undef TRY

} // namespace

// As in peers.cu.
extern "C" __attribute__((visibility("default"))) int cusparse_version() {
  int major = 0, minor = 0, patch = 0;
  cusparseGetProperty(MAJOR_VERSION, &major);
  cusparseGetProperty(MINOR_VERSION, &minor);
  cusparseGetProperty(PATCH_LEVEL, &patch);
  return major * 100000 + minor * 100 + patch;
}

PEER(cusparse_spmv_f32) { return spmv<float>(storage, bytes, buffers, n, queue); }
PEER(cusparse_spmv_f64) { return spmv<double>(storage, bytes, buffers, n, queue); }
#if CUSPARSE_VERSION >= 12300
PEER(cusparse_spmv_slices_f32) { return spmv<float>(storage, bytes, buffers, n, queue); }
PEER(cusparse_spmv_slices_f64) { return spmv<double>(storage, bytes, buffers, n, queue); }
#endif
PEER(cusparse_spmm_f32) { return spmm<float>(storage, bytes, buffers, n, queue); }
PEER(cusparse_spmm_f64) { return spmm<double>(storage, bytes, buffers, n, queue); }
#endif
