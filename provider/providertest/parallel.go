package providertest

import "flag"

// AllowWaiting lets the tests of a package run four at a time, however few processors there are:
// they mostly wait, for deadlines and for what must not happen. TestMain calls it first. A
// -parallel of the command line is kept, and fuzzing is left alone.
func AllowWaiting() {
	flag.Parse()
	if fuzz := flag.Lookup("test.fuzz"); fuzz != nil && fuzz.Value.String() != "" {
		return
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "4") // it is there in every test binary
	}
}
