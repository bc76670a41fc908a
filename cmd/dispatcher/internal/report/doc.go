// Package report turns the records of the ledger into reports for finance and operators.
//
//	Explain, Forecast    why a message went to its channel, or where one would go
//	NewDaily, NewRange   what was agreed, what was carried instead, and why
//	NewPreview           the intervals of weights
//	TrafficCounter       a past day under another document
//
// It is pure; its callers read the figures and print the result. words.go has the words for
// reasons, format.go writes numbers, and the templates have the sentences of an explanation.
package report
