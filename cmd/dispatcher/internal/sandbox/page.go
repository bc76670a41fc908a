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

	"dispatcher/provider"
)

// Page shows the counts of a sandbox in a browser.
type Page struct {
	server   *http.Server
	listener net.Listener
	done     chan struct{}
}

// style is the CSS of all pages; it fits a small screen.
const style = `
body{font:16px/1.5 system-ui,sans-serif;margin:3rem auto;max-width:60rem;padding:0 1rem;color:#222}
div{overflow-x:auto}table{border-collapse:collapse;font-size:.8rem}
th,td{padding:.2rem .4rem;text-align:right;border-bottom:1px solid #ddd;vertical-align:bottom}
th:first-child,td:first-child{text-align:left}small{color:#666;display:block}h1{font-size:1.4rem}`

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2">
<title>Sandbox</title>
<style>` + style + `</style>
<h1>Sandbox carriers</h1>
<div><table><tr><th>channel<th>sub&shy;mitted<th>accep&shy;ted<th>rejec&shy;ted<th>refused
<th>throt&shy;tled<th>lost<th>deli&shy;vered<th>undeli&shy;vered
<th>no receipt<th>calls refused<th>unread</tr>
{{range .}}<tr><td>{{.Channel}}<small>{{.Provider}} {{.Address}}</small>
<td>{{.Submitted}}<td>{{.Accepted}}<td>{{.Rejected}}<td>{{.Refused}}<td>{{.Throttled}}
<td>{{.Lost}}<td>{{.Delivered}}<td>{{.Undelivered}}<td>{{.WithoutWord}}
<td>{{.CallsRefused}}<td>{{.Unread}}</tr>
{{end}}</table></div>
<p><a href="/inbound">Send a message as a subscriber</a> ·
<a href="/status.json">These counts as JSON</a></p></html>
`))

// Serve opens the page on an address of loopback.
func (s *Sandbox) Serve(ctx context.Context, address string) (*Page, error) {
	if err := CheckLoopback(address); err != nil {
		return nil, fmt.Errorf("page of the sandbox: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("page of the sandbox: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_ = page.Execute(w, s.rows()) // the browser may have gone
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"carriers": s.Counts()})
	})
	mux.HandleFunc("GET /inbound", s.showInbound)
	mux.HandleFunc("POST /inbound", s.takeInbound)
	// Pages of other origins must not send messages.
	p := &Page{
		server: &http.Server{
			Handler:           http.NewCrossOriginProtection().Handler(mux),
			ReadHeaderTimeout: 5 * time.Second,
		},
		listener: listener,
		done:     make(chan struct{}),
	}
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

// URL is the address of the page.
func (p *Page) URL() string { return "http://" + p.listener.Addr().String() }

// Close stops the page.
func (p *Page) Close() error {
	err := p.server.Close()
	<-p.done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// inboundTimeout bounds the wait for the dispatcher's answer to a message of a subscriber.
const inboundTimeout = 10 * time.Second

var inboundForm = template.Must(template.New("inbound").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sandbox: a message of a subscriber</title>
<style>` + style + `
label{display:block;margin:.8rem 0}
input,select{font:inherit;display:block;width:20rem;max-width:100%}</style>
<h1>A message of a subscriber</h1>
<form method="post" action="/inbound">
<label>channel <select name="channel">{{range .}}<option>{{.}}{{end}}</select></label>
<label>from <input name="from" value="+447700900123" required></label>
<label>to <input name="to" value="+15550100100" required></label>
<label>text <input name="text" value="STOP" required></label>
<button>Send it to the dispatcher</button>
</form>
<p><a href="/">what the carriers see</a></p></html>
`))

// showInbound shows the form.
func (s *Sandbox) showInbound(w http.ResponseWriter, _ *http.Request) {
	_ = inboundForm.Execute(w, s.names()) // the browser may have gone
}

// takeInbound sends an inbound message for the form or for curl, and answers in one line of text.
func (s *Sandbox) takeInbound(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), inboundTimeout)
	defer cancel()
	in := provider.Inbound{
		From: r.PostFormValue("from"),
		To:   r.PostFormValue("to"),
		Text: r.PostFormValue("text"),
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := s.Inbound(ctx, r.PostFormValue("channel"), in); err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "sent to the dispatcher")
}
