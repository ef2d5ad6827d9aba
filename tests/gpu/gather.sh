#!/usr/bin/env bash
# Collect the wheels of requirements.txt into a folder, for a GPU machine that has no network: tests/gpu/gather.sh [FOLDER]
# The folder is .wheels unless it is named. It may be gathered on another system, for another Python than the one that runs:
#   PYTHON_VERSION (3.12), ARCH (x86_64), GLIBC (2.34: wheels for that C library or an older one); PYTHON runs pip (python3).
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=${1:-.wheels}
pins=tests/gpu/requirements.txt
version=${PYTHON_VERSION:-3.12}
arch=${ARCH:-x86_64}
glibc=${GLIBC:-2.34}
limit=50  # MiB

platforms=()  # pip takes a platform's name letter by letter: each older one is named
for ((minor = ${glibc#2.}; minor >= 5; minor--)); do platforms+=(--platform "manylinux_2_${minor}_$arch"); done
for year in 2014 2010 1; do platforms+=(--platform "manylinux${year}_$arch"); done

mkdir -p "$folder"
rm -f "$folder"/*.whl "$folder/requirements.txt"
"${PYTHON:-python3}" -m pip download --quiet --dest "$folder" --no-deps --only-binary=:all: --implementation cp \
  --python-version "$version" "${platforms[@]}" --requirement "$pins" || {
  echo "The wheels for Python $version on Linux $arch could not be collected (pip's words are above). This needs a network:"
  echo "run tests/gpu/gather.sh where there is one, and bring the folder $folder along."
  exit 1
}

wheels=("$folder"/*.whl)
bytes=$(cat "${wheels[@]}" | wc -c)
mib=$(awk "BEGIN {printf \"%.1f\", $bytes / 2 ^ 20}")
if ((bytes > limit * 2 ** 20)); then
  echo "${#wheels[@]} wheels in $folder have $mib MiB, over the limit of $limit MiB: take large ones out of $pins" \
    "(what a GPU machine has anyway need not be carried)"
  exit 1
fi
cp "$pins" "$folder/requirements.txt"  # run.sh knows by it that the folder is whole, and of these pins
echo "${#wheels[@]} wheels for Python $version on Linux $arch in $folder: $mib MiB"
