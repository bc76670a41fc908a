package main

import (
	"crypto/rand"
	"net/http"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/numbers"
	consolepages "dispatcher/cmd/dispatcher/internal/pages"
	"dispatcher/ledger"
)

// serveConsole adds the console to the API of a process, if any access is configured. With the
// token of embedded servers it returns a code with which one browser can sign in, once; else an
// empty one.
func serveConsole(
	opts *app.Options, gate *access.Gate, token string, intake *kafka.Intake,
) (code string) {
	if !gate.Enabled() {
		return ""
	}
	var once *consolepages.Once
	if token != "" {
		code = rand.Text()
		once = &consolepages.Once{Code: code, Token: token}
	}
	api := opts.Handler
	opts.Handler = func(
		l *ledger.Ledger, metrics *kafka.IntakeMetrics,
	) (http.Handler, func(), error) {
		below, closing, err := api(l, metrics)
		if err != nil {
			return nil, nil, err
		}
		region, err := numbers.ParseRegion(opts.Settings.DefaultRegion)
		if err != nil {
			return nil, nil, err
		}
		pages, err := consolepages.New(consolepages.Config{
			Gate: gate, Ledger: l, Keys: opts.Keys, Secret: opts.Keys[0][:], Once: once,
			DeadAfter: opts.Settings.DeadAfter, Log: opts.Log,
			Region: region, AllowUnknown: opts.Settings.AllowUnknownFields, Publish: intake.PublishOne,
			ReportCSV: reportCSV,
		})
		if err != nil {
			return nil, nil, err
		}
		mux := http.NewServeMux()
		mux.Handle("/api/", below)
		mux.Handle("/", pages)
		return mux, func() { closing(); pages.Close() }, nil
	}
	return code
}
