// Package webtest is what the tests of all HTTP adapters share, and the other side that they talk to.
//
// A Carrier is a scripted peer on loopback: it takes submits, answers as its behaviour says, keeps a log, and calls back
// with receipts and inbound messages. What its API looks like is a vendor's Protocol. The sandbox runs it, too; it sends
// nothing to anybody but to the callback address that a submit or a Config names.
//
// The checks are one for each promise of an adapter, so that a vendor's tests are its data: CheckConformance (the suite of
// providers over HTTP/1.1 and TLS), CheckAnswers (recorded answers), Explained and Blamed (tables of verdicts), Breaks (what
// recorded refusals do to a breaker), Requests (golden files), CheckStatuses, CheckTampered, CheckRefused, CheckIgnored, Timely, CheckSecrets
// and CheckReplayID (callbacks), Rig (a message and its receipts), CheckLookups (lookups), Faults and CheckPromises (settings).
package webtest
