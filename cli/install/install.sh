#!/bin/sh
# Installs toolcrib for the present user, from an archive of a release, or removes it:
#
#   sh install.sh [--version VERSION] [--from URL|FOLDER] [--dir FOLDER] [--libc gnu|musl] [--key FILE|KEY]
#   sh install.sh uninstall
#
# The archive is chosen by system, processor and C library, and compared with the release's SHA256SUMS. With a public key,
# here or in the published script, `minisign` verifies the signature of SHA256SUMS first. The program goes to ~/.local/bin
# (--dir, TOOLCRIB_INSTALL_DIR), completions to the user's folders of bash, zsh and fish. No other file is changed, no root is
# needed, and the list of the installed files in ~/.local/share/toolcrib/install.txt lets `uninstall` remove exactly those.
set -eu

version='@version@'
releases='@releases@'
public_key='@public_key@'

fail() {
  printf 'error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

usage() {
  printf '%s\n' 'usage: install.sh [--version VERSION] [--from URL|FOLDER] [--dir FOLDER] [--libc gnu|musl] [--key FILE|KEY]' \
    '       install.sh uninstall'
}

# A value that the packing left open counts as empty.
known() {
  case $1 in
    @*@) ;;
    *) printf '%s' "$1" ;;
  esac
}

has() { command -v "$1" >/dev/null 2>&1; }

# Prints the target without its C library.
platform() {
  processor=$(uname -m)
  case $(uname -s) in
    Linux) system=unknown-linux ;;
    Darwin)
      system=apple-darwin
      # A shell that the system translates sees the other processor.
      if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then processor=arm64; fi
      ;;
    MINGW* | MSYS* | CYGWIN*) fail 'this script does not install on Windows' 'use install.ps1 in PowerShell' ;;
    *) fail "there is no archive for the system \`$(uname -s)\`" 'build from source: cargo install --path cli' ;;
  esac
  case $processor in
    x86_64 | amd64) processor=x86_64 ;;
    aarch64 | arm64) processor=aarch64 ;;
    *) fail "there is no archive for the processor \`$processor\`" 'build from source: cargo install --path cli' ;;
  esac
  printf '%s-%s' "$processor" "$system"
}

# Prints the targets whose programs may run here, the best first. A static program runs on every Linux.
targets() {
  base=$(platform) || exit 1
  case $base in
    *-linux) ;;
    *) printf '%s' "$base"; return ;;
  esac
  if [ -n "$libc" ]; then
    printf '%s' "$base-$libc"
  elif getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    printf '%s' "$base-gnu $base-musl"
  else
    printf '%s' "$base-musl"
  fi
}

# fetch NAME: copies a file of the release into the work folder.
fetch() {
  case $from in
    http://*@*) fail "\`$from\` holds a user name" ;;
    http://127.0.0.1[:/]* | http://localhost[:/]* | https://*) download "$from/$1" "$work/$1" ;;
    http://*) fail "\`$from\` is not encrypted" 'use https' ;;
    file://*) copy "${from#file://}/$1" ;;
    *://*) fail "cannot download from \`$from\`" 'use https://, file:// or a folder' ;;
    *) copy "$from/$1" ;;
  esac
}

copy() { [ -f "$1" ] && cp "$1" "$work/"; }

# A server that sends nothing for half a minute ends it.
download() {
  echo "downloading $1" >&2
  if has curl; then
    curl --proto '=https,http' --proto-redir '=https' --fail --silent --show-error --location --retry 3 \
      --connect-timeout 20 --speed-limit 1 --speed-time 30 --output "$2" "$1"
  elif has wget; then
    case "$1 $(wget --version 2>/dev/null)" in
      # It cannot refuse to be redirected to an address without encryption: such requests go to a proxy that does not exist.
      # The `wget` of BusyBox would use that proxy for all requests.
      https://*'GNU Wget'*) http_proxy=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 wget -q -T 30 -O "$2" "$1" ;;
      *) wget -q -T 30 -O "$2" "$1" ;;
    esac
  else
    fail 'neither `curl` nor `wget` was found' 'install one of them, or download the files and use --from FOLDER'
  fi
}

sha256() {
  if has sha256sum; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif has shasum; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif has openssl; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    fail 'no program computes SHA-256 here' 'install `sha256sum`, `shasum` or `openssl`'
  fi
}

# Verifies the signature of SHA256SUMS. A key that the caller names demands it; the one of the script needs a verifier here.
verify_signature() {
  if [ -z "$public_key" ]; then
    echo 'signature: not checked, since no public key was given (--key)' >&2
    return
  fi
  if ! has minisign; then
    [ -z "$key_given" ] || fail '`minisign` was not found, and --key demands a verified signature' 'install `minisign`'
    echo 'signature: not checked, since `minisign` was not found' >&2
    return
  fi
  fetch SHA256SUMS.minisig || fail "\`$from\` has no SHA256SUMS.minisig" 'this release is not signed: nothing was installed'
  if [ -f "$public_key" ]; then set -- -p "$public_key"; else set -- -P "$public_key"; fi
  minisign -Vqm "$work/SHA256SUMS" "$@" || fail 'the signature of SHA256SUMS is not valid' 'nothing was installed: do not use these files'
  echo 'signature: valid' >&2
}

# Prints the name of the archive for a target, as SHA256SUMS lists it.
archive_name() {
  while read -r _ name; do
    case $name in
      */*) ;;
      toolcrib-[0-9]*-"$1".tar.gz)
        listed=${name#toolcrib-}
        if [ -z "$version" ] || [ "${listed%-"$1".tar.gz}" = "$version" ]; then printf '%s' "$name"; return; fi
        ;;
    esac
  done <"$work/SHA256SUMS"
}

# unpack TARGET: fetches the archive, compares its digest, unpacks it and starts the program.
unpack() {
  archive=$(archive_name "$1")
  if [ -z "$archive" ]; then
    reason="SHA256SUMS of \`$from\` lists no archive${version:+ of version $version} for $1"
    return 1
  fi
  fetch "$archive" || fail "cannot read \`$archive\` of \`$from\`"
  expected=$(while read -r digest name; do if [ "$name" = "$archive" ]; then echo "$digest"; fi; done <"$work/SHA256SUMS")
  found=$(sha256 "$work/$archive") || exit 1
  [ "$found" = "$expected" ] || fail "\`$archive\` has the SHA-256 $found, and SHA256SUMS says $expected" 'nothing was installed: download it again'
  tar -xzf "$work/$archive" -C "$work" || fail "cannot unpack \`$archive\`"
  unpacked=$work/${archive%.tar.gz}
  if ! "$unpacked/toolcrib" --version >"$work/started" 2>&1; then
    reason="the program for $1 does not start here: $(head -n 1 "$work/started")"
    return 1
  fi
}

# put FILE PLACE MODE: replaces a file in one step. It fails with a reason, and leaves nothing then.
put() {
  if [ -d "$2" ]; then
    reason="\`$2\` is a folder"
    return 1
  fi
  new=$2.new$$
  if mkdir -p "$(dirname "$2")" && cp "$1" "$new" && chmod "$3" "$new" && mv -f "$new" "$2"; then
    new=''
  else
    rm -f "$new"
    reason=$(head -n 1 "$work/why")
    return 1
  fi 2>"$work/why"
}

# own FILE: fails if a file of another installation is there. `put` refuses folders.
own() {
  if [ -d "$1" ] || { [ ! -e "$1" ] && [ ! -L "$1" ]; }; then return 0; fi
  [ -f "$list" ] && grep -Fqx -- "$1" "$list"
}

# completion SHELL FILE PLACE: installs the completions of a shell. The program works without them.
completion() {
  if ! own "$3"; then
    echo "warning: no completions for $1: \`$3\` is of another installation" >&2
  elif ! note "$3"; then
    echo "warning: no completions for $1: $reason" >&2
  elif ! put "$unpacked/completions/$2" "$3" 644; then
    echo "warning: no completions for $1: $reason" >&2
    forget
  fi
}

# note FILE: adds a file to the list of those that `uninstall` removes, before it is there. Those of an earlier installation stay.
# The shell does not end at an error in a condition, so each step is checked.
note() {
  reason="\`$list\` cannot be copied to \`$work\`"
  if [ -f "$list" ]; then cp "$list" "$work/listed" || return 1; else : >"$work/listed" || return 1; fi
  cp "$work/listed" "$work/list" || return 1
  for line in "$1" "$list"; do
    grep -Fqx -- "$line" "$work/list" || printf '%s\n' "$line" >>"$work/list" || return 1
  done
  put "$work/list" "$list" 644
}

# Takes back the last `note`, of a file that could not be written.
forget() {
  if [ -s "$work/listed" ]; then put "$work/listed" "$list" 644 || true; else rm -f "$list"; fi
}

install_release() {
  from=${from:-${releases:+$releases/v$version}}
  [ -n "$from" ] || fail 'this script does not know where releases are' 'name a folder or an address with the files of a release, such as --from .'
  case $from in
    /*) ;;
    *://*) ;;
    *) from=$PWD/$from ;;
  esac
  work=$(mktemp -d) || fail 'there is no folder for the download' 'nothing was installed: set TMPDIR to a folder that you can write'
  new=''
  trap 'rm -rf "$work"; [ -z "$new" ] || rm -f "$new"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  wanted=$(targets) || exit 1
  fetch SHA256SUMS || fail "cannot read \`SHA256SUMS\` of \`$from\`" 'name a folder or an address with the files of a release: --from'
  verify_signature
  unpacked='' reason='' first=''
  for target in $wanted; do
    if unpack "$target"; then break; fi
    # The best target is the one that should have worked.
    unpacked='' first=${first:-$reason}
  done
  case $first in
    *'ermission denied'*) [ -n "$unpacked" ] || fail "$first" 'nothing was installed: if TMPDIR is mounted noexec, set it to another folder' ;;
  esac
  [ -n "$unpacked" ] || fail "$first" 'nothing was installed'
  # One folder can have several paths. The list has the real one.
  real=$dir
  if mkdir -p "$dir" 2>/dev/null; then real=$(cd "$dir" && pwd -P); fi
  own "$real/toolcrib" || fail "\`$dir/toolcrib\` exists, and \`$list\` does not name it" \
    'nothing was installed: remove it with the program that installed it, or choose another folder with --dir'
  note "$real/toolcrib" || fail "cannot write \`$list\`: $reason" 'nothing was installed'
  if ! put "$unpacked/toolcrib" "$dir/toolcrib" 755; then
    failure=$reason
    forget
    reason=$failure
    fail "cannot write \`$dir/toolcrib\`: $reason" 'nothing was installed: choose another folder with --dir'
  fi
  completion bash toolcrib.bash "$data/bash-completion/completions/toolcrib"
  completion zsh toolcrib.zsh "$data/zsh/site-functions/_toolcrib"
  completion fish toolcrib.fish "${XDG_CONFIG_HOME:-$HOME/.config}/fish/completions/toolcrib.fish"
  echo "installed $(cat "$work/started") ($target) in $dir" >&2
  case :$PATH: in
    *":$dir:"*)
      found=$(command -v toolcrib || true)
      [ "$found" = "$dir/toolcrib" ] || echo "warning: \`$found\` comes first in your PATH" >&2
      ;;
    *) echo "hint: add it to your PATH: export PATH=\"$dir:\$PATH\"" >&2 ;;
  esac
  case ${SHELL:-} in
    */zsh) echo "hint: for completions, put this before compinit in ~/.zshrc: fpath=(\"$data/zsh/site-functions\" \$fpath)" >&2 ;;
  esac
  echo 'next: toolcrib list' >&2
}

uninstall() {
  [ -f "$list" ] || fail "\`$list\` does not exist: this script installed nothing here"
  left=''
  while read -r file; do
    if [ "$file" = "$list" ] || { [ ! -e "$file" ] && [ ! -L "$file" ]; }; then continue; fi
    if rm -f -- "$file"; then
      echo "removed $file" >&2
    else
      left=1
    fi
  done <"$list"
  [ -z "$left" ] || fail 'some files stay, and also the list of them' 'remove what stands in their way, and repeat'
  rm -f -- "$list"
  echo "removed $list" >&2
  echo 'your settings, logs and tools were kept: `toolcrib` folders in ~/.config, ~/.local/share, ~/.local/state and ~/.cache' >&2
}

main() {
  version=$(known "$version") releases=$(known "$releases") public_key=$(known "$public_key")
  [ -n "${HOME:-}" ] || fail 'HOME is not set'
  from='' libc='' key_given='' action=install_release
  dir=${TOOLCRIB_INSTALL_DIR:-$HOME/.local/bin} data=${XDG_DATA_HOME:-$HOME/.local/share}
  list=$data/toolcrib/install.txt
  while [ $# -gt 0 ]; do
    case $1 in
      uninstall) action=uninstall; shift; continue ;;
      -h | --help) usage; exit ;;
      --version | --from | --dir | --libc | --key) [ $# -gt 1 ] || fail "\`$1\` needs a value" ;;
      *) usage >&2; fail "\`$1\` is not known" ;;
    esac
    case $1 in
      --version) version=${2#v} ;;
      --from) from=${2%/} ;;
      --dir) dir=$2 ;;
      --libc) libc=$2 ;;
      --key) public_key=$2 key_given=1 ;;
    esac
    shift 2
  done
  case $libc in '' | gnu | musl) ;; *) fail "--libc is \`$libc\`" 'use gnu or musl' ;; esac
  case $version in *[!0-9A-Za-z.+-]*) fail "\`$version\` is no version" ;; esac
  case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
  $action
}

# The last line, so that a part of this script does nothing.
main "$@"
