package pages

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// byOf says who makes the change that a form asks for, and why. The author is the user who is
// signed in. A form that changes the routing also has the version that its page showed.
func byOf(r *request) (*control.By, error) {
	by := &control.By{
		Author: r.who.Name, Via: ledger.ViaConsole,
		Reason: strings.TrimSpace(r.PostFormValue("reason")),
	}
	if by.Reason == "" {
		return nil, refuse("write a reason: the history shows it")
	}
	if sent := r.PostFormValue("version"); sent != "" {
		version, err := strconv.ParseInt(sent, 10, 64)
		if err != nil {
			return nil, refuse("the form does not say from which version it was made: reload the page")
		}
		by.Expect = &version
	}
	return by, nil
}

// refuse is the error of a mistake of the user.
func refuse(what string) error { return &control.Refused{Err: errors.New(what)} }

// draft begins the change of the routing that a form asks for.
func (s *Server) draft(r *request) (*control.Draft, error) {
	by, err := byOf(r)
	if err != nil {
		return nil, err
	}
	if by.Expect == nil {
		return nil, refuse("the form does not say from which version it was made: reload the page")
	}
	return control.Begin(r.Context(), s.cfg.Ledger, nil, *by)
}

// changed redirects to a page with a notice of the version that is in force now.
func (s *Server) changed(w http.ResponseWriter, r *request, to string, d *control.Changed) error {
	s.facts.forget()
	words := fmt.Sprintf("Version %d is in force for every claim from now on.", d.Version)
	if !d.Applied {
		words = fmt.Sprintf("That is what version %d says already: nothing was changed.", d.Version)
	}
	return s.done(w, r, to, strings.Join(append([]string{words}, d.Warnings...), " "))
}
