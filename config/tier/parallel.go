package tier

import (
	"flag"
	"runtime"
	"strconv"
)

// Parallel lets at least n tests of a package run at a time, however few processors there are: they
// mostly wait, for deadlines or to see that nothing happens. TestMain calls it first. It does not
// change a -parallel of the command line, nor fuzzing.
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
