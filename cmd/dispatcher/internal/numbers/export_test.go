package numbers

// Metadata is for tests that query the numbering plans themselves.
var Metadata = metadata
