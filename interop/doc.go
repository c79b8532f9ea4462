// Package interop drives gladhand with public ACP clients, from outside: the
// official TypeScript SDK as an editor, versions 1 and 2; acpx, a command line for
// ACP agents; and socat for those who type frames by hand. It has tests only.
//
// The clients are Node programs. install.sh puts exactly what package-lock.json
// names, and the Node that acpx needs, into a cache outside the repository:
//
//	sh interop/install.sh
//	GLADHAND_INTEROP=require go test -count=1 ./interop/
//
// Without the cache the tests skip, unless GLADHAND_INTEROP is "require".
//
// Clients start a program called gladhand. In these tests that is the test binary,
// which starts the real gladhand acp and writes down every line that passes in
// either direction; at each test's end package acptest holds all of them against
// the protocol's own schemas. Each test has its own data directory, and ends its
// daemon.
package interop
