package daemon

import "flag"

// long asks for the long forms of this package's tests: 200 kills and more.
var long = flag.Bool("long", false, "run the long forms of the crash and disk tests")

// times is how often a test does something, in its bounded and its long form.
func times(bounded, asked int) int {
	if *long {
		return asked
	}
	return bounded
}
