package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"time"
)

// Page shows the counts of a sandbox to a browser.
type Page struct {
	server   *http.Server
	listener net.Listener
	done     chan struct{}
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="2">
<title>Sandbox</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:3rem auto;max-width:70rem;padding:0 1rem;color:#222}
table{border-collapse:collapse}th,td{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #ddd}
th:nth-child(-n+3),td:nth-child(-n+3){text-align:left}h1{font-size:1.4rem}</style>
<h1>Sandbox carriers</h1>
<table><tr><th>channel<th>provider<th>address<th>submitted<th>accepted<th>rejected<th>refused<th>throttled<th>lost<th>delivered<th>undelivered<th>no receipt<th>unread</tr>
{{range .}}<tr><td>{{.Channel}}<td>{{.Provider}}<td>{{.Address}}<td>{{.Submitted}}<td>{{.Accepted}}<td>{{.Rejected}}<td>{{.Refused}}<td>{{.Throttled}}<td>{{.Lost}}<td>{{.Delivered}}<td>{{.Undelivered}}<td>{{.WithoutWord}}<td>{{.Unread}}</tr>
{{end}}</table>
<p><a href="/status.json">as JSON</a></p></html>
`))

// Serve opens the page on an address.
func (s *Sandbox) Serve(ctx context.Context, address string) (*Page, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("page of the sandbox: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_ = page.Execute(w, s.rows()) // a browser that has gone
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"carriers": s.Counts()})
	})
	p := &Page{server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener: listener, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener) // always http.ErrServerClosed
	}()
	return p, nil
}

// row is a line of the page.
type row struct {
	Count
	Address string
}

func (s *Sandbox) rows() []row {
	rows := make([]row, len(s.carriers))
	for i, c := range s.Counts() {
		rows[i] = row{c, s.carriers[i].running.address()}
	}
	return rows
}

// URL is where the page is.
func (p *Page) URL() string { return "http://" + p.listener.Addr().String() }

// Close ends the page.
func (p *Page) Close() error {
	err := p.server.Close()
	<-p.done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
