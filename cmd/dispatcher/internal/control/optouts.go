package control

import (
	"context"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

// OptOutCount counts the opt-outs of a tenant from one source. Scripts rely on its JSON names.
type OptOutCount struct {
	Tenant  string    `json:"tenant"`
	Source  string    `json:"source" doc:"keyword, command, api, console or import"`
	Channel string    `json:"channel" doc:"by which keywords came"`
	Current int64     `json:"current" doc:"on the list"`
	Ended   int64     `json:"ended" doc:"no longer on the list"`
	First   time.Time `json:"first" doc:"time of the earliest of all of them"`
	Last    time.Time `json:"last"`
}

// OptOutCounts are the opt-outs by tenant, source and channel.
type OptOutCounts struct {
	Current int64         `json:"current" doc:"all that are on a list"`
	OptOuts []OptOutCount `json:"opt_outs" nullable:"false"`
}

// CountOptOuts counts the opt-outs of one tenant, or of all when tenant is nil.
func CountOptOuts(ctx context.Context, l *ledger.Ledger, tenant *string) (*OptOutCounts, error) {
	counts, err := l.OptOuts.Count(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := &OptOutCounts{OptOuts: []OptOutCount{}}
	for i := range counts {
		n := &counts[i]
		out.Current += n.Current
		out.OptOuts = append(out.OptOuts, OptOutCount{
			n.Tenant, string(n.Source), n.Channel, n.Current, n.Ended, n.First, n.Last,
		})
	}
	return out, nil
}

// OptOut is one opt-out of a recipient. Scripts rely on its JSON names.
type OptOut struct {
	Since        time.Time  `json:"since"`
	Source       string     `json:"source"`
	Channel      string     `json:"channel"`
	Author       string     `json:"author"`
	Reason       string     `json:"reason" doc:"empty for roles that may not see what operators write by hand"`
	Until        *time.Time `json:"until" doc:"null while it lasts; then the following fields are empty"`
	EndedBy      string     `json:"ended_by"`
	EndedChannel string     `json:"ended_channel"`
	EndedAuthor  string     `json:"ended_author"`
	EndedReason  string     `json:"ended_reason" doc:"as reason"`
	Login        string     `json:"login" doc:"login of the database; empty where it was not recorded"`
	EndedLogin   string     `json:"ended_login"`
}

// OptOutHistory says whether a number is on the opt-out list of a tenant, and since when.
type OptOutHistory struct {
	Tenant   string   `json:"tenant"`
	OptedOut bool     `json:"opted_out"`
	History  []OptOut `json:"history" nullable:"false" doc:"the latest first"`
}

// OptOutsOf reads the opt-outs of a number, in the form of envelopes, from messages of a tenant.
func OptOutsOf(
	ctx context.Context, l *ledger.Ledger, tenant, number string,
) (*OptOutHistory, error) {
	entries, err := l.OptOuts.Of(ctx, tenant, number)
	if err != nil {
		return nil, err
	}
	out := &OptOutHistory{
		Tenant: tenant, OptedOut: len(entries) > 0 && entries[0].Until.IsZero(),
		History: []OptOut{},
	}
	for i := range entries {
		e := &entries[i]
		out.History = append(out.History, OptOut{
			Since: e.Since, Source: string(e.Source), Channel: e.Channel, Author: e.Author,
			Reason: e.Reason, Until: report.Moment(e.Until),
			EndedBy: string(e.EndedBy), EndedChannel: e.EndedChannel, EndedAuthor: e.EndedAuthor,
			EndedReason: e.EndedReason, Login: e.Login, EndedLogin: e.EndedLogin,
		})
	}
	return out, nil
}

// OptOutChange is a change of the opt-out list of a tenant by a person.
type OptOutChange struct {
	Tenant  string
	Source  ledger.OptOutSource
	Numbers []string // in the form of envelopes
	Remove  bool     // takes them off the list
}

// OptOutsChanged is the result of a change of a list. Scripts rely on its JSON names.
type OptOutsChanged struct {
	Tenant  string `json:"tenant"`
	Numbers int    `json:"numbers" doc:"of the request"`
	Changed int64  `json:"changed" doc:"that were put on the list, or taken off it"`
}

// ChangeOptOuts puts numbers on a list, or takes them off, in one transaction.
func ChangeOptOuts(
	ctx context.Context, l *ledger.Ledger, c *OptOutChange, by By,
) (*OptOutsChanged, error) {
	if err := CheckReason(by.Reason); err != nil {
		return nil, err
	}
	listing := ledger.Listing{
		Tenant: c.Tenant, Source: c.Source, Author: by.Author, Reason: by.Reason,
	}
	change := l.OptOuts.Add
	if c.Remove {
		change = l.OptOuts.Remove
	}
	n, err := change(ctx, listing, c.Numbers)
	if err != nil {
		return nil, err
	}
	return &OptOutsChanged{Tenant: c.Tenant, Numbers: len(c.Numbers), Changed: n}, nil
}
