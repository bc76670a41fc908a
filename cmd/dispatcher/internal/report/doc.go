// Package report turns what the ledger has recorded into what finance and operators read: the daily
// report, the preview of a routing document, and the explanation of one message.
//
//	Explain, Forecast    why a message went where it went, or where it would go
//	NewDaily             what was agreed for a day, what was carried instead, and why
//	NewPreview           the intervals that weights come to
//	TrafficCounter       what a day would have come to under another document
//
// It is pure; the commands fetch the figures and print the result. Words for reasons are in
// words.go, numbers in sentences in format.go, and the sentences of an explanation in templates.
package report
