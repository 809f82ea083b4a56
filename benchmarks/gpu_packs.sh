#!/usr/bin/env bash
# Rates of packs on one GPU: methods compile side by side and are measured one at a time.
#
#   bash benchmarks/gpu_packs.sh STAGE OUT [SECONDS]     # begins no measurement of rates after so many seconds (420)
#
# STAGE is one of
#   packs      10, 3 and 1 models of every method, profiles of ten
#   wide       32 and 128 models
#   gin        one and four flows for 28 x 28 images
#   starts     seconds to the first step: an empty cache, a filled one, one that was packed and unpacked
#   precision  the intervention model in float32 and in bf16, ten seeds
# Each of them ends within ten minutes. Writes gpu.json, profile.json, precision.csv and precision.md (the stored ones
# with new rows), starts.log and logs to OUT. Digits need UNWEAVE_DATA. The queue runs a stage as a job of its name.
set -u
STAGE=$1 OUT=$2 LIMIT=${3:-420} END=570
mkdir -p "$OUT" || exit 1
CACHES=$(mktemp -d)  # not in OUT: thousands of files
trap 'rm -rf "$CACHES"' EXIT
export PYTHONUNBUFFERED=1 UNWEAVE_CACHE=$CACHES/first
R=$OUT/gpu.json P=$OUT/profile.json S="stack, compiled" PYTHON=${PYTHON:-python3}
DEVICE=${DEVICE:-cuda} ROUNDS=${ROUNDS:-3}  # DEVICE=cpu only shows that it runs
METHODS=("BetaVAE, conv" "FactorVAE, conv" "AdaGVAE, 3 channels" "SwapContrast, 28 x 28" "CNNClassifier, 28 x 28"
  "InterventionAutoencoder" "InterventionAutoencoder, ridge" "InfoGANCR")
[ -f "$R" ] || cp benchmarks/results/gpu.json "$R"
[ -f "$P" ] || cp benchmarks/results/profile.json "$P"
[ -f "$OUT/precision.csv" ] || cp benchmarks/results/precision.csv "$OUT"
start=$(date +%s)
before() { local s=$(($1 - $(date +%s) + start)); echo $((s > 1 ? s : 1)); }
rate() {
  timeout "$(before "$LIMIT")" "$PYTHON" -m benchmarks.gpu --device "$DEVICE" --out "$R" --rounds "$ROUNDS" --patience 0 \
    --parts training "$@" >> "$OUT/$STAGE.log" 2>&1
}
first_step() {
  timeout "$(before $END)" "$PYTHON" -m benchmarks.gpu --device "$DEVICE" --out "$R" --warm --parts training --packs 10 \
    --precisions bf16 --how "$S" --cases "$1" 2>> "$OUT/$STAGE.log" | grep '^{"case' | tee -a "$OUT/starts.log"
}
few_threads() { export TORCHINDUCTOR_COMPILE_THREADS=2 OMP_NUM_THREADS=1; }  # else those of all processes wait

case $STAGE in
  packs)
    few_threads
    for name in "${METHODS[@]}"; do
      (
        rate --precisions bf16 --packs 10 --how "$S" --cases "$name" --profile "$P"
        rate --precisions bf16 --packs 3 1 --how "$S" fork --cases "$name"
      ) &
    done
    wait
    ;;
  wide)
    few_threads
    for name in "${METHODS[@]}"; do
      (for models in 32 128; do rate --precisions bf16 --packs "$models" --how "$S" --cases "$name"; done) &
    done
    wait
    ;;
  gin)
    for how in "$S" "fork, compiled"; do
      rate --packs 1 4 --precisions tf32 --how "$how" --cases "GIN, 28 x 28"
    done
    ;;
  starts)
    export UNWEAVE_CACHE=$CACHES/empty
    for name in "${METHODS[@]}"; do
      for cache in empty filled; do
        echo "first step, $cache cache" | tee -a "$OUT/starts.log"
        first_step "$name"
      done
    done
    "$PYTHON" -m unweave cache pack "$CACHES/cache.tar.gz" >> "$OUT/$STAGE.log" 2>&1
    export UNWEAVE_CACHE=$CACHES/unpacked
    "$PYTHON" -m unweave cache unpack "$CACHES/cache.tar.gz" >> "$OUT/$STAGE.log" 2>&1
    echo "first step, unpacked cache" | tee -a "$OUT/starts.log"
    for name in "BetaVAE, conv" "InterventionAutoencoder" "InfoGANCR"; do first_step "$name"; done
    ;;
  precision)
    timeout "$(before $END)" "$PYTHON" -m benchmarks.precision --device "$DEVICE" ${STEPS:+--steps "$STEPS" --seeds 2} \
      --methods intervention --ways single bf16 --out "$CACHES/runs" --table "$OUT/precision.csv" \
      > "$OUT/precision.log" 2>&1
    ;;
  *)
    echo "$STAGE: expected packs, wide, gin, starts or precision" >&2
    exit 2
    ;;
esac
