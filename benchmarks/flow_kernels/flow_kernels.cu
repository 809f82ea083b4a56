// Fused float32 kernels for the convolutional coupling blocks of GIN on 28 x 28 images.
// All tensors are NCHW with contiguous planes; a batch stride says where the next image begins.

template <int S, int CI, int CO, int IMGS, int TC, int CH, bool FLIP, int EPI>
struct Conv {
  static constexpr int PITCH = S == 14 ? 18 : 9;              // row pitch of the padded image in shared memory
  static constexpr int PLANE = (S + 2) * PITCH;
  static constexpr int PARTS = S / 7;                          // segments of seven pixels in a row
  static constexpr int SEGS = IMGS * S * PARTS;
  static constexpr int THREADS = SEGS * (CO / TC);
};

// y = epilogue(bias + conv3x3(x, w)); w is (CI, 9, CO). EPI 0: bias only, 1: bias, ReLU, 2: mask by other > 0 (no bias),
// 3: add other (no bias).
template <int S, int CI, int CO, int IMGS, int TC, int CH, bool FLIP, int EPI>
__device__ __forceinline__ void conv3x3(const float* __restrict__ x, int xs, const float* __restrict__ w,
                                        const float* __restrict__ bias, const float* other, int os,
                                        float* y, int ys, int n) {
  using K = Conv<S, CI, CO, IMGS, TC, CH, FLIP, EPI>;
  __shared__ float xsm[IMGS * CH * K::PLANE];
  __shared__ __align__(16) float wsm[CH * 9 * CO];
  const int tid = threadIdx.x, first = blockIdx.x * IMGS;
  const int seg = tid % K::SEGS, cog = tid / K::SEGS;
  const int img = seg / (S * K::PARTS), part = seg % (S * K::PARTS);
  const int row = part / K::PARTS, col = (part % K::PARTS) * 7;
  float acc[TC][7];
#pragma unroll
  for (int t = 0; t < TC; t++)
#pragma unroll
    for (int p = 0; p < 7; p++) acc[t][p] = 0.f;

  for (int c0 = 0; c0 < CI; c0 += CH) {
    if (c0 > 0) __syncthreads();
    constexpr int SIDE = S + 2;
    for (int i = tid; i < IMGS * CH * SIDE * SIDE; i += K::THREADS) {
      const int q = i % SIDE, r = (i / SIDE) % SIDE, c = (i / (SIDE * SIDE)) % CH, m = i / (SIDE * SIDE * CH);
      const bool in = q > 0 && q <= S && r > 0 && r <= S && first + m < n;
      xsm[(m * CH + c) * K::PLANE + r * K::PITCH + q] =
          in ? x[(long long)(first + m) * xs + (c0 + c) * S * S + (r - 1) * S + q - 1] : 0.f;
    }
    for (int i = tid; i < CH * 9 * CO; i += K::THREADS) {
      const int o = i % CO, tap = (i / CO) % 9, c = i / (9 * CO);
      wsm[(c * 9 + (FLIP ? 8 - tap : tap)) * CO + o] = w[(c0 * 9) * CO + i];
    }
    __syncthreads();
#pragma unroll 2
    for (int c = 0; c < CH; c++) {
      const float* xp = xsm + (img * CH + c) * K::PLANE + row * K::PITCH + col;
      const float* wp = wsm + c * 9 * CO + cog * TC;
#pragma unroll
      for (int ky = 0; ky < 3; ky++) {
        float v[9];
#pragma unroll
        for (int p = 0; p < 9; p++) v[p] = xp[ky * K::PITCH + p];
#pragma unroll
        for (int kx = 0; kx < 3; kx++) {
          float u[TC];
          if constexpr (TC == 4) {
            const float4 f = *reinterpret_cast<const float4*>(wp + (ky * 3 + kx) * CO);
            u[0] = f.x; u[1] = f.y; u[2] = f.z; u[3] = f.w;
          } else {
#pragma unroll
            for (int t = 0; t < TC; t++) u[t] = wp[(ky * 3 + kx) * CO + t];
          }
#pragma unroll
          for (int t = 0; t < TC; t++)
#pragma unroll
            for (int p = 0; p < 7; p++) acc[t][p] = fmaf(v[p + kx], u[t], acc[t][p]);
        }
      }
    }
  }
  if (first + img >= n) return;
#pragma unroll
  for (int t = 0; t < TC; t++) {
    const int o = cog * TC + t, at = o * S * S + row * S + col;
    const float b = EPI < 2 ? bias[o] : 0.f;
    const float* other_at = other + (long long)(first + img) * os + at;
    float* y_at = y + (long long)(first + img) * ys + at;
#pragma unroll
    for (int p = 0; p < 7; p++) {
      float v = acc[t][p] + b;
      if (EPI == 1) v = fmaxf(v, 0.f);
      if (EPI == 2) v = other_at[p] > 0.f ? v : 0.f;
      if (EPI == 3) v += other_at[p];
      y_at[p] = v;
    }
  }
}

// Partial sums of the gradients of weights (CO, CI, 9) and biases (CO): one row of `partial`, at an offset, per block.
template <int S, int CI, int CO, int IMGS, int WCO, int G>
__device__ __forceinline__ void wgrad3x3(const float* __restrict__ x, int xs, const float* __restrict__ g,
                                         float* __restrict__ partial, int width, int offset, int n) {
  constexpr int SIDE = S + 2, XP = SIDE * SIDE + (SIDE * SIDE % 2 == 0), GP = S * S + (S * S % 2 == 0);
  constexpr int EACH = CI * (CO / WCO), THREADS = EACH * G, SIZE = CI * CO * 9;
  __shared__ float xsm[IMGS * CI * XP];
  __shared__ float gsm[IMGS * CO * GP];
  __shared__ float red[G > 1 ? SIZE + CO : 1];
  const int tid = threadIdx.x, first = blockIdx.x * IMGS;
  const int ci = tid % CI, cog = (tid / CI) % (CO / WCO), grp = tid / EACH;
  for (int i = tid; i < IMGS * CI * SIDE * SIDE; i += THREADS) {
    const int q = i % SIDE, r = (i / SIDE) % SIDE, c = (i / (SIDE * SIDE)) % CI, m = i / (SIDE * SIDE * CI);
    const bool in = q > 0 && q <= S && r > 0 && r <= S && first + m < n;
    xsm[(m * CI + c) * XP + r * SIDE + q] =
        in ? x[(long long)(first + m) * xs + c * S * S + (r - 1) * S + q - 1] : 0.f;
  }
  for (int i = tid; i < IMGS * CO * S * S; i += THREADS) {
    const int p = i % (S * S), c = (i / (S * S)) % CO, m = i / (S * S * CO);
    gsm[(m * CO + c) * GP + p] = first + m < n ? g[(long long)(first + m) * CO * S * S + c * S * S + p] : 0.f;
  }
  if (G > 1)
    for (int i = tid; i < SIZE + CO; i += THREADS) red[i] = 0.f;
  __syncthreads();

  float acc[WCO][9], sum[WCO];
#pragma unroll
  for (int t = 0; t < WCO; t++) {
    sum[t] = 0.f;
#pragma unroll
    for (int k = 0; k < 9; k++) acc[t][k] = 0.f;
  }
  for (int line = grp; line < IMGS * S; line += G) {
    const int m = line / S, row = line % S;
    const float* xp = xsm + (m * CI + ci) * XP + row * SIDE;
    const float* gp = gsm + (m * CO + cog * WCO) * GP + row * S;
    float v[3][3];
#pragma unroll
    for (int ky = 0; ky < 3; ky++) {
      v[ky][1] = xp[ky * SIDE];
      v[ky][2] = xp[ky * SIDE + 1];
    }
#pragma unroll
    for (int p = 0; p < S; p++) {
#pragma unroll
      for (int ky = 0; ky < 3; ky++) {
        v[ky][0] = v[ky][1];
        v[ky][1] = v[ky][2];
        v[ky][2] = xp[ky * SIDE + p + 2];
      }
#pragma unroll
      for (int t = 0; t < WCO; t++) {
        const float gv = gp[t * GP + p];
        sum[t] += gv;
#pragma unroll
        for (int k = 0; k < 9; k++) acc[t][k] = fmaf(gv, v[k / 3][k % 3], acc[t][k]);
      }
    }
  }
  float* out = partial + (long long)blockIdx.x * width + offset;
  if constexpr (G == 1) {
#pragma unroll
    for (int t = 0; t < WCO; t++) {
      const int o = cog * WCO + t;
#pragma unroll
      for (int k = 0; k < 9; k++) out[(o * CI + ci) * 9 + k] = acc[t][k];
      if (ci == 0) out[SIZE + o] = sum[t];
    }
  } else {
    for (int turn = 0; turn < G; turn++) {
      if (grp == turn) {
#pragma unroll
        for (int t = 0; t < WCO; t++) {
          const int o = cog * WCO + t;
#pragma unroll
          for (int k = 0; k < 9; k++) red[(o * CI + ci) * 9 + k] += acc[t][k];
          if (ci == 0) red[SIZE + o] += sum[t];
        }
      }
      __syncthreads();
    }
    for (int i = tid; i < SIZE + CO; i += THREADS) out[i] = red[i];
  }
}

#define CONV(name, S, CI, CO, IMGS, TC, CH, FLIP, EPI)                                                          \
  extern "C" __global__ void __launch_bounds__(Conv<S, CI, CO, IMGS, TC, CH, FLIP, EPI>::THREADS)                \
  name(const float* x, int xs, const float* w, const float* bias, const float* other, int os, float* y, int ys,  \
       int n) {                                                                                                   \
    conv3x3<S, CI, CO, IMGS, TC, CH, FLIP, EPI>(x, xs, w, bias, other, os, y, ys, n);                             \
  }
#define WGRAD(name, S, CI, CO, IMGS, WCO, G)                                                                      \
  extern "C" __global__ void __launch_bounds__(CI*(CO / WCO) * G)                                                 \
  name(const float* x, int xs, const float* g, float* partial, int width, int offset, int n) {                    \
    wgrad3x3<S, CI, CO, IMGS, WCO, G>(x, xs, g, partial, width, offset, n);                                       \
  }

// 14 x 14, channels 2 -> 16 -> 16 -> 4, and back
CONV(f14a, 14, 2, 16, 1, 4, 2, false, 1)
CONV(f14b, 14, 16, 16, 1, 4, 16, false, 1)
CONV(f14c, 14, 16, 4, 1, 1, 16, false, 0)
CONV(d14c, 14, 4, 16, 1, 4, 4, true, 2)
CONV(d14b, 14, 16, 16, 1, 4, 16, true, 2)
CONV(d14a, 14, 16, 2, 1, 1, 16, true, 3)
WGRAD(w14a, 14, 2, 16, 1, 4, 14)
WGRAD(w14b, 14, 16, 16, 1, 4, 2)
WGRAD(w14c, 14, 16, 4, 1, 4, 7)
// 7 x 7, channels 8 -> 32 -> 32 -> 16, and back
CONV(f7a, 7, 8, 32, 2, 4, 8, false, 1)
CONV(f7b, 7, 32, 32, 2, 4, 16, false, 1)
CONV(f7c, 7, 32, 16, 2, 2, 16, false, 0)
CONV(d7c, 7, 16, 32, 2, 4, 16, true, 2)
CONV(d7b, 7, 32, 32, 2, 4, 16, true, 2)
CONV(d7a, 7, 32, 8, 2, 1, 16, true, 3)
WGRAD(w7a, 7, 8, 32, 2, 4, 2)
WGRAD(w7b, 7, 32, 32, 2, 4, 1)
WGRAD(w7c, 7, 32, 16, 2, 4, 1)

// Both layouts of the weights of three convolutions: (CI, 9, CO) for the way there, (CO, 9, CI) for the way back.
extern "C" __global__ void layouts(const float* w1, const float* w2, const float* w3, int a, int h, int b,
                                   float* there, float* back) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int n1 = a * h * 9, n2 = h * h * 9, n3 = h * b * 9;
  const float* w;
  int ci, co, base;
  if (i < n1) { w = w1; ci = a; co = h; base = 0; }
  else if (i < n1 + n2) { w = w2; ci = h; co = h; base = n1; }
  else if (i < n1 + n2 + n3) { w = w3; ci = h; co = b; base = n1 + n2; }
  else return;
  i -= base;
  const int tap = i % 9, c = (i / 9) % ci, o = i / (9 * ci);
  const float v = w[i];
  there[base + (c * 9 + tap) * co + o] = v;
  back[base + (o * 9 + tap) * ci + c] = v;
}

// Column sums of (rows, width); blocks of 32 x 8 threads.
extern "C" __global__ void column_sums(const float* __restrict__ partial, int rows, int width, float* __restrict__ out) {
  __shared__ float part[8][33];
  const int lane = threadIdx.x % 32, line = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
  float total = 0.f;
  if (column < width)
    for (int r = line; r < rows; r += 8) total += partial[(long long)r * width + column];
  part[line][lane] = total;
  __syncthreads();
  if (line == 0 && column < width) {
#pragma unroll
    for (int k = 1; k < 8; k++) total += part[k][lane];
    out[column] = total;
  }
}

__device__ __forceinline__ float clamped(float s) { return 1.2732395447351628f * atanf(0.5f * s); }
__device__ __forceinline__ float slope(float s) { return 0.6366197723675814f / (1.f + 0.25f * s * s); }

// Affine coupling with volume-preserving log-scales: y = a exp(s - mean s) + t; (s, t) are the halves of st, and the
// mean is over channels. One thread per pixel; m channels of p pixels.
template <int M>
__device__ __forceinline__ void affine(const float* __restrict__ a, int as, const float* __restrict__ st,
                                       float* __restrict__ y, int ys, int p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * p) return;
  const int k = i / p, q = i % p;
  const float* sp = st + (long long)k * 2 * M * p + q;
  float s[M], mean = 0.f;
#pragma unroll
  for (int c = 0; c < M; c++) { s[c] = clamped(sp[c * p]); mean += s[c]; }
  mean /= M;
#pragma unroll
  for (int c = 0; c < M; c++)
    y[(long long)k * ys + c * p + q] = a[(long long)k * as + c * p + q] * expf(s[c] - mean) + sp[(M + c) * p];
}
template <int M>
__device__ __forceinline__ void affine_back(const float* __restrict__ a, int as, const float* __restrict__ st,
                                            const float* __restrict__ gy, int gs, float* ga, int gas, float* gst,
                                            int p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * p) return;
  const int k = i / p, q = i % p;
  const float* sp = st + (long long)k * 2 * M * p + q;
  float* gp = gst + (long long)k * 2 * M * p + q;
  float s[M], d[M], mean = 0.f, gmean = 0.f;
#pragma unroll
  for (int c = 0; c < M; c++) { s[c] = clamped(sp[c * p]); mean += s[c]; }
  mean /= M;
#pragma unroll
  for (int c = 0; c < M; c++) {
    const float g = gy[(long long)k * gs + c * p + q], e = g * expf(s[c] - mean);
    d[c] = e * a[(long long)k * as + c * p + q];
    gmean += d[c];
    ga[(long long)k * gas + c * p + q] = e;
    gp[(M + c) * p] = g;
  }
  gmean /= M;
#pragma unroll
  for (int c = 0; c < M; c++) gp[c * p] = (d[c] - gmean) * slope(sp[c * p]);
}
#define AFFINE(M)                                                                                                  \
  extern "C" __global__ void affine##M(const float* a, int as, const float* st, float* y, int ys, int p, int n) {  \
    affine<M>(a, as, st, y, ys, p, n);                                                                             \
  }                                                                                                                \
  extern "C" __global__ void affine_back##M(const float* a, int as, const float* st, const float* gy, int gs,      \
                                            float* ga, int gas, float* gst, int p, int n) {                        \
    affine_back<M>(a, as, st, gy, gs, ga, gas, gst, p, n);                                                         \
  }
AFFINE(2)
AFFINE(8)

// The same for vectors: one block of 128 threads per observation, m features.
__device__ __forceinline__ float block_sum(float v) {
  __shared__ float part[4];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  const float total = part[0] + part[1] + part[2] + part[3];
  __syncthreads();
  return total;
}
extern "C" __global__ void __launch_bounds__(128)
affine_row(const float* __restrict__ a, int as, const float* __restrict__ st, float* __restrict__ y, int ys, int m) {
  const int k = blockIdx.x;
  const float* sp = st + (long long)k * 2 * m;
  float total = 0.f;
  for (int c = threadIdx.x; c < m; c += 128) total += clamped(sp[c]);
  const float mean = block_sum(total) / m;
  for (int c = threadIdx.x; c < m; c += 128)
    y[(long long)k * ys + c] = a[(long long)k * as + c] * expf(clamped(sp[c]) - mean) + sp[m + c];
}
extern "C" __global__ void __launch_bounds__(128)
affine_row_back(const float* __restrict__ a, int as, const float* __restrict__ st, const float* __restrict__ gy, int gs,
                float* ga, int gas, float* gst, int m) {
  const int k = blockIdx.x;
  const float* sp = st + (long long)k * 2 * m;
  float* gp = gst + (long long)k * 2 * m;
  float total = 0.f, gtotal = 0.f;
  for (int c = threadIdx.x; c < m; c += 128) total += clamped(sp[c]);
  const float mean = block_sum(total) / m;
  for (int c = threadIdx.x; c < m; c += 128) {
    const float g = gy[(long long)k * gs + c], e = g * expf(clamped(sp[c]) - mean);
    gtotal += e * a[(long long)k * as + c];
    ga[(long long)k * gas + c] = e;
    gp[m + c] = g;
  }
  const float gmean = block_sum(gtotal) / m;
  for (int c = threadIdx.x; c < m; c += 128) {
    const float d = gy[(long long)k * gs + c] * expf(clamped(sp[c]) - mean) * a[(long long)k * as + c];
    gp[c] = (d - gmean) * slope(sp[c]);
  }
}
