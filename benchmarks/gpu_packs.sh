#!/usr/bin/env bash
# Rates of packs on one GPU: methods compile side by side and are measured one at a time.
#
#   bash benchmarks/gpu_packs.sh OUT [SECONDS]     # begins no measurement of rates after so many seconds (420)
#
# Writes gpu.json, profile.json, precision.csv and precision.md (copies of benchmarks/results with new rows), starts.log
# and logs to OUT. At the end, as long as ten minutes are not over: seconds to the first step with an empty cache, with
# a filled one, and with one that was packed and unpacked. Digits need UNWEAVE_DATA.
set -u
OUT=$1 LIMIT=${2:-420} END=590
mkdir -p "$OUT" || exit 1
CACHES=$(mktemp -d)  # not in OUT: thousands of files
trap 'rm -rf "$CACHES"' EXIT
export PYTHONUNBUFFERED=1 UNWEAVE_CACHE=$CACHES/first
R=$OUT/gpu.json P=$OUT/profile.json S="stack, compiled"
cp benchmarks/results/gpu.json "$R"
cp benchmarks/results/profile.json "$P"
cp benchmarks/results/precision.csv "$OUT"
start=$(date +%s)
before() { local s=$(($1 - $(date +%s) + start)); echo $((s > 1 ? s : 1)); }
left() { before "$LIMIT"; }
rate() {
  timeout "$(left)" python3 -m benchmarks.gpu --out "$R" --rounds 3 --patience 0 --parts training --precisions bf16 "$@" \
    >> "$OUT/all.log" 2>&1
}
first_step() {
  timeout "$(before $END)" python3 -m benchmarks.gpu --warm --parts training --packs 10 --precisions bf16 --how "$S" --cases "$1" 2>&1 |
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
filled=$UNWEAVE_CACHE
export UNWEAVE_CACHE=$CACHES/empty
echo "first step, empty cache"
for case in "InfoGANCR" "InterventionAutoencoder" "SwapContrast, 28 x 28"; do first_step "$case"; done
echo "first step, filled cache"
for case in "InfoGANCR" "InterventionAutoencoder" "SwapContrast, 28 x 28"; do first_step "$case"; done
export UNWEAVE_CACHE=$filled
python3 -m unweave cache pack "$CACHES/cache.tar.gz"
export UNWEAVE_CACHE=$CACHES/other
python3 -m unweave cache unpack "$CACHES/cache.tar.gz"
echo "first step, unpacked cache"
first_step "BetaVAE, conv"
