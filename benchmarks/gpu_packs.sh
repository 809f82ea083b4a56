#!/usr/bin/env bash
# Rates of packs on one GPU: methods compile side by side and are measured one at a time.
#
#   bash benchmarks/gpu_packs.sh OUT [SECONDS]     # stops what is not measured after so many seconds (420)
#
# Writes gpu.json, profile.json and precision.csv (copies of benchmarks/results with new rows), lane_conv.json and logs
# to OUT. At the end: seconds to the first step from a filled cache, and from one that was packed and unpacked. Digits
# need UNWEAVE_DATA.
set -u
OUT=$1 LIMIT=${2:-420}
CACHES=$(mktemp -d)  # not in OUT: thousands of files
trap 'rm -rf "$CACHES"' EXIT
export PYTHONUNBUFFERED=1 UNWEAVE_CACHE=$CACHES/first
R=$OUT/gpu.json P=$OUT/profile.json S="stack, compiled"
cp benchmarks/results/gpu.json "$R"
cp benchmarks/results/profile.json "$P"
cp benchmarks/results/precision.csv "$OUT"
start=$(date +%s)
left() { local s=$((LIMIT - $(date +%s) + start)); echo $((s > 1 ? s : 1)); }
rate() {
  timeout "$(left)" python3 -m benchmarks.gpu --out "$R" --rounds 3 --patience 0 --parts training --precisions bf16 "$@" \
    >> "$OUT/all.log" 2>&1
}
first_step() {
  timeout 90 python3 -m benchmarks.gpu --warm --parts training --packs 10 --precisions bf16 --how "$S" --cases "$1" 2>&1 |
    grep '^{"case' | tee -a "$OUT/starts.log"
}

export TORCHINDUCTOR_COMPILE_THREADS=2
export OMP_NUM_THREADS=1  # else the threads of all processes wait for each other
timeout $((LIMIT + 60)) python3 -m benchmarks.precision --methods intervention --ways single --out "$CACHES/runs" \
  --table "$OUT/precision.csv" > "$OUT/precision.log" 2>&1 &
for case in "InterventionAutoencoder" "InterventionAutoencoder, ridge" "InfoGANCR" "AdaGVAE, 3 channels" \
  "SwapContrast, 28 x 28"; do
  (
    rate --packs 10 --how "$S" --cases "$case" --profile "$P"
    rate --packs 3 1 --how "$S" fork --cases "$case"
  ) &
done
(
  rate --packs 10 --how "$S" --cases "FactorVAE, conv" --profile "$P"
  rate --packs 3 1 --how "$S" fork --cases "FactorVAE, conv"
) &
(
  rate --packs 10 --how "$S" --cases "CNNClassifier, 28 x 28" --profile "$P"
  rate --packs 128 --how "$S" --cases "BetaVAE, conv"
  rate --packs 3 1 --how "$S" fork --cases "CNNClassifier, 28 x 28"
) &
(
  rate --packs 10 --how "$S" --cases "BetaVAE, conv" --profile "$P"
  rate --packs 3 1 32 --how "$S" fork --cases "BetaVAE, conv"
) &
wait
unset TORCHINDUCTOR_COMPILE_THREADS OMP_NUM_THREADS
echo "first step, filled cache"
first_step "BetaVAE, conv"
first_step "InfoGANCR"
python3 -m unweave cache pack "$CACHES/cache.tar.gz"
export UNWEAVE_CACHE=$CACHES/other
python3 -m unweave cache unpack "$CACHES/cache.tar.gz"
echo "first step, unpacked cache"
first_step "BetaVAE, conv"
export UNWEAVE_CACHE=$CACHES/empty
echo "first step, empty cache, alone"
first_step "InterventionAutoencoder"
first_step "InfoGANCR"
first_step "SwapContrast, 28 x 28"
