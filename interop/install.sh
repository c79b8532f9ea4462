#!/bin/sh
# Puts the public ACP clients that the tests in this directory drive, and the Node
# that they need, into the user's cache directory: what package-lock.json names,
# with the hashes it names; no package's install script is run. (npm ci would want
# the lock to name optional parts for systems that the registry may not have.)
# Nothing is installed globally. Needs npm once; prints the directory.
set -eu
cd "$(dirname "$0")"

case "$(uname -s)" in
Darwin) cache="$HOME/Library/Caches" ;;
*) cache="${XDG_CACHE_HOME:-$HOME/.cache}" ;;
esac
if command -v sha256sum >/dev/null; then
	sum=$(sha256sum <package-lock.json)
else
	sum=$(shasum -a 256 <package-lock.json)
fi
dir="$cache/gladhand-interop/$(printf %.16s "$sum")"

if [ -e "$dir/complete" ]; then
	echo "interop: $dir is there already"
	exit 0
fi
command -v npm >/dev/null || {
	echo "interop: npm is needed to install the clients; install Node and npm, then run this again" >&2
	exit 1
}
echo "interop: installing @agentclientprotocol/sdk, acpx and node 22 into $dir (about 250 MB, once)"
rm -rf "$dir"
mkdir -p "$dir"
cp package.json package-lock.json .npmrc "$dir"
(cd "$dir" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error)
touch "$dir/complete"
echo "interop: $dir is ready"
