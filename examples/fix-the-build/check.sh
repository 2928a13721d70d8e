#!/bin/sh
# The project's one check: the report over the orders must be the expected one.
set -eu
cd "$(dirname "$0")"

actual=$(mktemp)
trap 'rm -f "$actual"' EXIT
awk -f report.awk data/orders.csv > "$actual"

if diff -u expected.txt "$actual"; then
    echo "check: the report is as expected"
else
    echo "check: the report differs from expected.txt" >&2
    exit 1
fi
