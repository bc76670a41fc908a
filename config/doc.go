// Package config reads the two things that an operator writes: the settings of one process, from
// the environment, and the routing document, which all processes share.
//
//	settings*.go, secrets.go, drawkeys.go   the settings, and the files that they name
//	document.go, routing.go                 a document: its text, and the routing that it describes
//	channel.go ... inbound.go               one part of the model each, with the code that reads it
//	yaml.go, scalar.go, problems.go         reading nodes, and saying what is wrong on which line
//	edit*.go, rewrite.go                    edits, which keep comments, order and quotes
//	diff.go, diff_paths.go, paths.go        what differs in meaning between two routings
//	effects.go                              what a version adds: weights that health weighting
//	                                        lowered
//
// These types are the only model of the routing: package decide embeds them in what it computes
// from them. The package turns text into checked values and says, in one sentence each, what is
// wrong and what to do. It opens no connection and starts nothing. Whether the settings of a
// channel suit its provider is for the adapter to say.
package config
