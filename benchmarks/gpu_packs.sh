#!/usr/bin/env bash
# Rates of packs on one GPU: methods compile side by side and are measured one at a time.
#
#   bash benchmarks/gpu_packs.sh OUT [SECONDS]     # stops what is not measured after so many seconds (420)
#
# Writes gpu.json and profile.json (copies of benchmarks/results with new rows), lane_conv.json and all.log to OUT.
# At the end: seconds to the first step from a filled cache, and from one that was packed and unpacked. Digits need
# UNWEAVE_DATA.
set -u
OUT=$1 LIMIT=${2:-420}
export PYTHONUNBUFFERED=1 UNWEAVE_CACHE=$OUT/cache
R=$OUT/gpu.json P=$OUT/profile.json S="stack, compiled"
cp benchmarks/results/gpu.json "$R"
cp benchmarks/results/profile.json "$P"
start=$(date +%s)
left() { local s=$((LIMIT - $(date +%s) + start)); echo $((s > 1 ? s : 1)); }
rate() {
  timeout "$(left)" python3 -m benchmarks.gpu --out "$R" --rounds 3 --patience 0 --parts training --precisions bf16 "$@" \
    >> "$OUT/all.log" 2>&1
}
first_step() {
  timeout 60 python3 -m benchmarks.gpu --warm --parts training --packs 10 --precisions bf16 --how "$S" --cases "$1" 2>&1 |
    grep '^{"case'
}

timeout 60 python3 -m benchmarks.lane_conv --out "$OUT/lane_conv.json" || exit 1
export TORCHINDUCTOR_COMPILE_THREADS=2
for case in "InterventionAutoencoder" "InterventionAutoencoder, ridge" "InfoGANCR" "AdaGVAE, 3 channels" \
  "SwapContrast, 28 x 28"; do
  rate --packs 10 --how "$S" --cases "$case" --profile "$P" &
done
(
  rate --packs 10 --how "$S" --cases "FactorVAE, conv" --profile "$P"
  rate --packs 3 --how "$S" fork --cases "FactorVAE, conv"
) &
(
  rate --packs 10 --how "$S" --cases "CNNClassifier, 28 x 28" --profile "$P"
  rate --packs 128 --how "$S" --cases "BetaVAE, conv"
) &
(
  rate --packs 10 --how "$S" --cases "BetaVAE, conv" --profile "$P"
  rate --packs 3 1 32 --how "$S" fork --cases "BetaVAE, conv"
) &
wait
unset TORCHINDUCTOR_COMPILE_THREADS
echo "first step, filled cache"
first_step "BetaVAE, conv"
first_step "InfoGANCR"
python3 -m unweave cache pack "$OUT/cache.tar.gz"
export UNWEAVE_CACHE=$OUT/other
python3 -m unweave cache unpack "$OUT/cache.tar.gz"
echo "first step, unpacked cache"
first_step "BetaVAE, conv"
grep -h '^{"case' "$OUT/all.log"
