package pages

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

// channelPage is one channel with the forms to change its state.
type channelPage struct {
	status.Detail
	Version  int64
	Filled   *limitTable
	Findings []status.Finding
	Price    string
	Errors   int64 // attempts of the last minutes that were not accepted
	// Next are the states that it can change to.
	Next []stateButton
}

// stateButton is a button that changes the state.
type stateButton struct{ State, Text, Help string }

func (s *Server) channelsNow(r *request) (any, error) {
	now, err := s.facts.read(r.Context())
	if err != nil {
		return nil, err
	}
	return now.channels, nil
}

func (s *Server) channel(w http.ResponseWriter, r *request) error {
	now, err := s.facts.read(r.Context())
	if err != nil {
		return err
	}
	name := r.PathValue("channel")
	at := slices.IndexFunc(now.channels, func(c status.Detail) bool { return c.Name == name })
	if at < 0 {
		return notFound{fmt.Sprintf("There is no channel %q. The page of "+
			"channels lists them.", name)}
	}
	p := &channelPage{
		Detail: now.channels[at], Version: now.version.Version,
		Filled: newLimitTable(now.doc, now.limits, name), Next: stateButtons(now.channels[at].State),
	}
	for _, f := range now.status.Findings {
		if f.Check == "traffic of "+name {
			p.Findings = append(p.Findings, f)
		}
	}
	for _, c := range p.Codes {
		p.Errors += c.Count
	}
	p.Price = priceWords(&now.doc.Channels[at].Price)
	return s.show(w, r, "channel", "Channel "+name, p)
}

// priceWords is the default price of a segment.
func priceWords(p *config.Price) string {
	if p.Currency == "" {
		return "not in the document"
	}
	return report.Amount(p.Lists[len(p.Lists)-1].Default, p.Currency) + " a segment by default"
}

// stateButtons returns a button for each state other than the present one.
func stateButtons(now string) []stateButton {
	all := []stateButton{
		{string(config.Enabled), "Enable", "It takes messages again."},
		{string(config.Draining), "Drain", "It gets no message any more; what it has is finished."},
		{
			string(config.Disabled), "Disable",
			"As drained; the word says that it is meant to stay so.",
		},
	}
	return slices.DeleteFunc(all, func(b stateButton) bool { return b.State == now })
}

func (s *Server) setState(w http.ResponseWriter, r *request) error {
	name, state := r.PathValue("channel"), config.ChannelState(r.PostFormValue("state"))
	switch state {
	case config.Enabled, config.Draining, config.Disabled:
	default:
		return refuse("choose a state")
	}
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	done, err := draft.SetState(r.Context(), name, state)
	if err != nil {
		return err
	}
	return s.changed(w, r, "/channels/"+url.PathEscape(name), done)
}

// answerWait is how long the form waits for the provider's answer.
const answerWait = 10 * time.Second

// testChannel sends one message over the channel, and shows the provider's answer.
func (s *Server) testChannel(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	key := r.PostFormValue("key")
	if !formKey.MatchString(key) {
		return refuse("the form has no key, by which it is known when it comes twice: reload the page")
	}
	m := &control.TestMessage{
		ID: control.NewTestID(key), Channel: r.PathValue("channel"), To: r.PostFormValue("to"),
		Text: r.PostFormValue("text"), From: r.PostFormValue("from"),
	}
	twice, err := s.sendTestOnce(r, m, by)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWait)
	defer cancel()
	answer, err := control.AwaitAnswer(ctx, s.cfg.Ledger, m.ID)
	if err != nil {
		return err
	}
	words := answerWords(&answer)
	at := messagePath(m.ID)
	if answer.State == "" {
		at = "/channels/" + url.PathEscape(m.Channel)
		words = "Message " + m.ID + " was published, and no instance has read it yet: look for it " +
			"among the messages."
	}
	if twice {
		words = "The form came twice, and its message was sent once. " + words
	}
	return s.done(w, r, at, words)
}

// formKey is what newKey writes into a form.
var formKey = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// sendTestOnce sends the message of a form, unless the same form has come before.
func (s *Server) sendTestOnce(
	r *request, m *control.TestMessage, by *control.By,
) (twice bool, err error) {
	hash := sha256.Sum256([]byte(strings.Join([]string{m.Channel, m.To, m.From, m.Text}, "\x00")))
	form := &ledger.Request{
		Principal: r.who.Name, Key: m.ID, Digest: hash[:], Attempt: rand.Text(),
	}
	_, err = s.cfg.Ledger.Requests.Begin(r.Context(), form)
	switch {
	case errors.Is(err, ledger.ErrUnderway): // sent before: its row stays unfinished for a day
		return true, nil
	case errors.Is(err, ledger.ErrOtherRequest):
		return false, refuse("this form has sent another message: open the page of the channel again")
	case err == nil:
		_, err = control.SendTest(r.Context(), &control.TestConfig{
			Ledger: s.cfg.Ledger, Region: s.cfg.Region, AllowUnknown: s.cfg.AllowUnknown,
			Publish: s.cfg.Publish,
		}, m, *by)
	}
	if _, perhaps := errors.AsType[*control.Unpublished](err); err == nil || perhaps {
		return false, err
	}
	// Nothing was published, so the form may come again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), factsTimeout)
	defer cancel()
	return false, errors.Join(err, s.cfg.Ledger.Requests.Forget(ctx, form))
}

// answerWords describes the present state of a test message.
func answerWords(a *control.TestAnswer) string {
	if a.Outcome == "" {
		return "The channel has not answered so far. The message is " + a.State + "."
	}
	words := "The channel's answer: " + a.Outcome
	if a.Code != "" {
		words += ", code " + a.Code
	}
	return words + "."
}
