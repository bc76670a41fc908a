package pages

import (
	"cmp"
	"net/http"
	"strings"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/ledger"
)

const optOutsPath = "/opt-outs"

// optOutsPage counts the opt-outs, and says what was found of one number, which it does not show.
type optOutsPage struct {
	*control.OptOutCounts
	Found   *control.OptOutHistory // nil before a look-up
	Reasons bool                   // whether the user may see reasons
}

func (s *Server) optOuts(w http.ResponseWriter, r *request) error {
	return s.showOptOuts(w, r, nil)
}

func (s *Server) showOptOuts(
	w http.ResponseWriter, r *request, found *control.OptOutHistory,
) error {
	counts, err := control.CountOptOuts(r.Context(), s.cfg.Ledger, nil)
	if err != nil {
		return err
	}
	return s.show(w, r, "optouts", "Opt-outs", &optOutsPage{
		OptOutCounts: counts, Found: found, Reasons: r.may(access.Operate), // reasons may have numbers
	})
}

// lookUpOptOut shows whether a number is on the list of a tenant. As in findByNumber, the number is
// in no URL and not on the page.
func (s *Server) lookUpOptOut(w http.ResponseWriter, r *request) error {
	tenant, number, err := s.recipient(r)
	if err != nil {
		return err
	}
	found, err := control.OptOutsOf(r.Context(), s.cfg.Ledger, tenant, number)
	if err != nil {
		return err
	}
	return s.showOptOuts(w, r, found)
}

// changeOptOut puts a number on the list of a tenant, or takes it off.
func (s *Server) changeOptOut(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	tenant, number, err := s.recipient(r)
	if err != nil {
		return err
	}
	change := &control.OptOutChange{
		Tenant: tenant, Source: ledger.ByConsole, Numbers: []string{number},
	}
	did, was := "is on", "was on"
	switch r.PostFormValue("move") {
	case "add":
	case "remove":
		change.Remove, did, was = true, "is off", "was not on"
	default:
		return refuse("choose to put the number on the list or to take it off")
	}
	done, err := control.ChangeOptOuts(r.Context(), s.cfg.Ledger, change, *by)
	if err != nil {
		return err
	}
	list := "the list of " + cmp.Or(tenant, "messages without a tenant")
	if done.Changed == 0 {
		return s.done(w, r, optOutsPath, "The number "+was+" "+list+": nothing was changed.")
	}
	return s.done(w, r, optOutsPath, "The number "+did+" "+list+" now.")
}

// recipient reads the tenant and the number of a form. No error repeats the number.
func (s *Server) recipient(r *request) (tenant, number string, err error) {
	number, ok := numbers.Typed(s.cfg.Region, r.PostFormValue("number"))
	if !ok {
		return "", "", refuse("this is not a phone number: write it with plus and country code")
	}
	return strings.TrimSpace(r.PostFormValue("tenant")), number, nil
}
