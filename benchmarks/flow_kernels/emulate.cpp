// The CUDA kernels on a CPU, for tests: one std::thread per CUDA thread.
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>
#include <functional>
#include <memory>
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__
struct float4 { float x, y, z, w; };
struct dim { int x; };
thread_local dim threadIdx, blockIdx, blockDim;
std::unique_ptr<std::barrier<>> gate;
// threads that return early must still arrive
static void __syncthreads() { gate->arrive_and_wait(); }
static float lanes[1024];
static float __shfl_down_sync(unsigned, float v, int o) {
  lanes[threadIdx.x] = v; __syncthreads();
  float r = (threadIdx.x % 32 + o < 32) ? lanes[threadIdx.x + o] : v; __syncthreads(); return r;
}
#include "flow_kernels.cu"
static void run(int grid, int block, const std::function<void()>& f) {
  for (int b = 0; b < grid; b++) {
    gate = std::make_unique<std::barrier<>>(block);
    std::vector<std::thread> ts;
    for (int t = 0; t < block; t++)
      ts.emplace_back([&, t, b] { threadIdx.x = t; blockIdx.x = b; blockDim.x = block; f(); gate->arrive_and_drop(); });
    for (auto& t : ts) t.join();
  }
}
#define P(i) (float*)p[i]
#define E_CONV(name) extern "C" void e_##name(int grid, int block, void** p, int* k) { run(grid, block, [=] { name(P(0), k[0], P(1), P(2), P(3), k[1], P(4), k[2], k[3]); }); }
#define E_WG(name) extern "C" void e_##name(int grid, int block, void** p, int* k) { run(grid, block, [=] { name(P(0), k[0], P(1), P(2), k[1], k[2], k[3]); }); }
E_CONV(f14a) E_CONV(f14b) E_CONV(f14c) E_CONV(d14a) E_CONV(d14b) E_CONV(d14c)
E_CONV(f7a) E_CONV(f7b) E_CONV(f7c) E_CONV(d7a) E_CONV(d7b) E_CONV(d7c)
E_WG(w14a) E_WG(w14b) E_WG(w14c) E_WG(w7a) E_WG(w7b) E_WG(w7c)
extern "C" void e_layouts(int grid, int block, void** p, int* k) { run(grid, block, [=] { layouts(P(0), P(1), P(2), k[0], k[1], k[2], P(3), P(4)); }); }
extern "C" void e_column_sums(int grid, int block, void** p, int* k) { run(grid, block, [=] { column_sums(P(0), k[0], k[1], P(1)); }); }
#define E_AFF(M) extern "C" void e_affine##M(int grid, int block, void** p, int* k) { run(grid, block, [=] { affine##M(P(0), k[0], P(1), P(2), k[1], k[2], k[3]); }); } \
extern "C" void e_affine_back##M(int grid, int block, void** p, int* k) { run(grid, block, [=] { affine_back##M(P(0), k[0], P(1), P(2), k[1], P(3), k[2], P(4), k[3], k[4]); }); }
E_AFF(2) E_AFF(8)
extern "C" void e_affine_row(int grid, int block, void** p, int* k) { run(grid, block, [=] { affine_row(P(0), k[0], P(1), P(2), k[1], k[2]); }); }
extern "C" void e_affine_row_back(int grid, int block, void** p, int* k) { run(grid, block, [=] { affine_row_back(P(0), k[0], P(1), P(2), k[1], P(3), k[2], P(4), k[3]); }); }
