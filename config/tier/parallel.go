package tier

import (
	"flag"
	"runtime"
	"strconv"
)

// Parallel lets n tests of a package run at a time or more, however few processors there are: they
// mostly wait, for deadlines and for what must not happen. TestMain calls it first. A -parallel of
// the command line is kept, and fuzzing is left alone.
func Parallel(n int) {
	flag.Parse()
	if fuzz := flag.Lookup("test.fuzz"); fuzz != nil && fuzz.Value.String() != "" {
		return
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && n > runtime.GOMAXPROCS(0) {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // it is there in every test binary
	}
}
