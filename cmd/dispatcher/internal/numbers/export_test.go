package numbers

// Metadata is for tests that ask the plans themselves.
var Metadata = metadata
