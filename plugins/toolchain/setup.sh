#!/usr/bin/env bash
# Finds or makes a Rust toolchain that builds the tools for wasm32-wasip1.
#
# Three ways, tried in this order:
#   installed  the active toolchain already has the target's standard library;
#   rustup     `rustup target add wasm32-wasip1` succeeds;
#   debian     Debian's own rustc, library sources and wasi-libc become a private sysroot in the user's cache.
#
# The result is written to target/guest-toolchain, which `guest-cargo` reads. Never asks a question, and does nothing
# where nothing is to be done. FLOE_GUEST_TOOLCHAIN=installed|rustup|debian allows one way only.
set -euo pipefail

readonly TARGET=wasm32-wasip1
readonly PACKAGES=(rustc-web rust-web-src wasi-libc)
readonly LAYOUT=1                                # raise it when the layout of the private sysroot changes

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/floe/guest-toolchain"
result="$repository/target/guest-toolchain"
only="${FLOE_GUEST_TOOLCHAIN:-}"
why=()                                           # why each way was not possible

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$@" >&2; exit 1; }
allowed() { [[ -z $only || $only == "$1" ]]; }

check_programs() {
  local missing=() program
  for program in gcc make git; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  if ((${#missing[@]})); then
    fail "missing: ${missing[*]}." "Install them (Debian, Ubuntu: apt-get install ${missing[*]}), then run make setup again."
  fi
  if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    fail "Rust is missing: there is no cargo or no rustc on PATH." \
      "Install it from https://rustup.rs, open a new shell, then run make setup again."
  fi
  local wanted found
  wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$repository/Cargo.toml")
  found=$(rustc --version | cut -d' ' -f2) || fail "rustc does not run (see above)."
  if [[ $(printf '%s\n' "$wanted" "$found" | sort -V | head -n1) != "$wanted" ]]; then
    fail "rustc is $found, and Floe needs $wanted or newer." "Run: rustup update stable"
  fi
}

# Records what `guest-cargo` needs: the folder that goes first on PATH (may be empty) and a key that changes with it.
record() {
  local way=$1 bin=$2 key=$3 content
  content=$(printf 'way=%s\nbin=%s\nkey=%s\n' "$way" "$bin" "$key")
  mkdir -p "$(dirname "$result")"
  [[ -f $result && $(<"$result") == "$content" ]] || printf '%s\n' "$content" >"$result"
  say "guest toolchain: $4"
}

has_target() {
  local libraries
  libraries=$(rustc --print target-libdir --target "$TARGET" 2>/dev/null) && compgen -G "$libraries/libstd-*.rlib" >/dev/null
}

record_installed() {
  local version
  version=$(rustc --version)
  record "$1" "" "$version" "$version with $TARGET ($2)"
}

try_installed() {
  has_target || { why+=("installed: $(rustc --version) has no standard library for $TARGET."); return 1; }
  record_installed installed "already installed"
}

try_rustup() {
  command -v rustup >/dev/null || { why+=("rustup: there is no rustup on PATH."); return 1; }
  local answer
  if answer=$(RUSTUP_MAX_RETRIES=0 timeout 120 rustup target add "$TARGET" 2>&1) && has_target; then
    record_installed rustup "added by rustup"
  else
    answer=$(grep -m1 '^error' <<<"$answer" || tail -n1 <<<"$answer")
    why+=("rustup: \`rustup target add $TARGET\` failed: ${answer#error: }")
    return 1
  fi
}

is_installed() { [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]; }

install_packages() {
  local missing=() package root=()
  for package in "${PACKAGES[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || { why+=("debian: not root; run: sudo apt-get install --no-install-recommends ${missing[*]}"); return 1; }
    root=(sudo -n)
  fi
  say "installing ${missing[*]}"
  local install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends "${missing[@]}")
  "${install[@]}" </dev/null >/dev/null 2>&1 && return 0
  # The lists of packages may be missing or old.
  "${root[@]}" apt-get -qq update </dev/null >&2 || true
  local log
  log=$("${install[@]}" </dev/null 2>&1) || { why+=("debian: apt-get install ${missing[*]} failed: $(tail -n1 <<<"$log")"); return 1; }
}

# rust-lld ships in rustup's toolchain; Debian's lld is the same linker.
find_linker() {
  local host=$1 candidate
  for candidate in "$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld" /usr/bin/lld /usr/bin/lld-[0-9]*; do
    [[ -x $candidate ]] && { readlink -f "$candidate"; return 0; }
  done
  return 1
}

build_standard_library() {
  local folder=$1
  mkdir -p "$folder/src"
  : >"$folder/src/lib.rs"
  printf '[package]\nname = "floe-empty"\nedition = "2021"\n[workspace]\n' >"$folder/Cargo.toml"
  # Without the bitcode a later link-time optimisation cannot use these libraries.
  (cd "$folder" && env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u RUSTC_WRAPPER -u MAKEFLAGS \
    RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$folder/target" \
    CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS=-Cembed-bitcode=yes \
    cargo build --quiet --release --target "$TARGET" -Zbuild-std=std,panic_abort)
}

assemble_sysroot() {
  local sysroot=$1 build=$2 host=$3 linker=$4
  local guest="$sysroot/lib/rustlib/$TARGET/lib" native="$sysroot/lib/rustlib/$host"
  mkdir -p "$guest/self-contained" "$native/bin" "$sysroot/bin"
  find "$build/target/$TARGET/release/deps" -name '*.rlib' ! -name 'libfloe_empty-*' -exec cp {} "$guest/" \;
  local file libraries=()
  for file in libc.a crt1-reactor.o crt1-command.o; do
    libraries+=("$(dpkg -L wasi-libc | grep "/$file\$" | head -n1)")
  done
  cp "${libraries[@]}" "$guest/self-contained/"
  ln -s "$(/usr/bin/rustc --print sysroot)/lib/rustlib/$host/lib" "$native/lib"
  ln -s "$linker" "$native/bin/rust-lld"
  # The wrapper finds its own sysroot, so that the folder may be moved.
  cat >"$sysroot/bin/rustc" <<'WRAPPER'
#!/bin/sh
exec /usr/bin/rustc --sysroot "$(dirname "$(dirname "$(readlink -f "$0")")")" "$@"
WRAPPER
  chmod +x "$sysroot/bin/rustc"
}

try_debian() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    why+=("debian: this is not Debian or Ubuntu."); return 1
  fi
  install_packages || return 1
  local host linker
  host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
  linker=$(find_linker "$host") || { why+=("debian: there is no rust-lld; run: apt-get install lld"); return 1; }
  local versions key sysroot
  versions=$(dpkg-query -W -f='${Package}=${Version} ' "${PACKAGES[@]}")
  key=$(printf '%s|%s|%s' "$LAYOUT" "$versions" "$linker" | sha256sum | cut -c1-16)
  sysroot="$cache/$key"
  if [[ ! -f $sysroot/stamp ]]; then
    say "building the standard library for $TARGET once (about a minute)"
    local partial="$sysroot.partial.$$"
    # shellcheck disable=SC2064  # the folder's name is meant as it is now
    trap "rm -rf '$partial'" EXIT
    mkdir -p "$partial"
    build_standard_library "$partial/build" || { why+=("debian: building the standard library failed (see above)."); return 1; }
    assemble_sysroot "$partial" "$partial/build" "$host" "$linker"
    rm -rf "$partial/build"
    printf '%s\n' "$versions" >"$partial/stamp"
    rm -rf "$sysroot"
    mv "$partial" "$sysroot"
  fi
  record debian "$sysroot/bin" "$key" "Debian's $(/usr/bin/rustc --version | cut -d' ' -f1-2) with a private sysroot in $sysroot"
}

check_programs
case $only in
  '' | installed | rustup | debian) ;;
  *) fail "FLOE_GUEST_TOOLCHAIN=$only is none of installed, rustup, debian." ;;
esac
for way in installed rustup debian; do
  if allowed "$way" && "try_$way"; then
    exit 0
  fi
done
fail "no way to build for $TARGET:" "${why[@]/#/  }" \
  "Any one of these is enough: run \`rustup target add $TARGET\` where rustup reaches its server; use a Rust toolchain that has the" \
  "target; or, on Debian or Ubuntu, let root run: apt-get install --no-install-recommends ${PACKAGES[*]}"
