// Package web is the shared base of adapters for HTTP APIs: one call makes one request, whatever
// dies.
//
// An adapter says how a submission is written as a Request and how an Answer is read as a
// provider.Result; both are pure. This package does the rest: it holds the connections, knows
// whether a byte has left, heeds deadlines, refuses addresses of private networks, and keeps
// numbers, texts and secrets out of errors. Signatures, fields and codes are the adapters' business.
package web
