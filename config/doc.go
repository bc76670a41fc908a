// Package config reads the two things that an operator writes: the settings of one
// process, from the environment, and the routing document, which all processes share.
//
// A routing version is a document and the effects on its weights (ParseVersion). Documents can be
// changed in place (SetWeights, SetState) and compared by meaning (Diff).
//
// The package turns text into checked values and says, in one sentence each, what is wrong and
// what to do. It opens no connection and starts nothing. Whether the settings of a
// channel suit its provider is the adapter's to say; which route fits a message is
// compiled by package dispatch.
package config
