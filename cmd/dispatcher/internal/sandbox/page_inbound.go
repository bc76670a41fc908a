package sandbox

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"dispatcher/provider"
)

// inboundPatience bounds the wait for the dispatcher's answer to a message of a subscriber.
const inboundPatience = 10 * time.Second

var inboundForm = template.Must(template.New("inbound").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sandbox: a message of a subscriber</title>
<style>` + style + `label{display:block;margin:.8rem 0}input,select{font:inherit;display:block;width:20rem;max-width:100%}</style>
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
	_ = inboundForm.Execute(w, s.names()) // a browser that has gone
}

// takeInbound sends what a form or a curl asks for, and answers in one line of text.
func (s *Sandbox) takeInbound(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), inboundPatience)
	defer cancel()
	in := provider.Inbound{From: r.PostFormValue("from"), To: r.PostFormValue("to"), Text: r.PostFormValue("text")}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := s.Inbound(ctx, r.PostFormValue("channel"), in); err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "sent to the dispatcher")
}
