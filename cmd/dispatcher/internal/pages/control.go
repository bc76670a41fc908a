package pages

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
)

// byOf says who makes the change that a form asks for, and why: the author is whoever is signed in.
// A form that changes the routing also says from which version its page was made.
func byOf(r *request) (*control.By, error) {
	by := &control.By{Author: r.who.Name, Reason: strings.TrimSpace(r.PostFormValue("reason"))}
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

// refuse is a mistake of the user.
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

// changed leads on to a page that says which version is in force now.
func (s *Server) changed(w http.ResponseWriter, r *request, to string, d *control.Changed) error {
	s.facts.forget()
	words := fmt.Sprintf("Version %d is in force for every claim from now on.", d.Version)
	if !d.Applied {
		words = fmt.Sprintf("That is what version %d says already: nothing was changed.", d.Version)
	}
	return s.done(w, r, to, strings.Join(append([]string{words}, d.Warnings...), " "))
}
