package control

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"dispatcher/ledger"
)

// Action is something that somebody did, as the API and the console list it.
type Action struct {
	ID      int64     `json:"id" doc:"unique only together with kind and action"`
	At      time.Time `json:"at"`
	Login   string    `json:"login" doc:"login of the database; empty where it was not recorded"`
	Author  string    `json:"author"`
	Via     string    `json:"via" doc:"how it came in: command (the author is only claimed), api or console (the author was authenticated), control topic, the source of an opt-out, or dispatcher for what a process did by itself; empty where it was not recorded"`
	Action  string    `json:"action" doc:"what was done, such as cancel, pause, settle, apply or top_up"`
	Subject string    `json:"subject" doc:"the id of a message, or what else was acted on"`
	Kind    string    `json:"kind" doc:"routing, ramp, window, budget, guard, message, opt_out or erasure"`
	Detail  string    `json:"detail" doc:"more, in words"`
	Reason  string    `json:"reason" doc:"why; empty for roles that may not see what operators write by hand"`
}

// ActionsPage selects a page of actions.
type ActionsPage struct {
	Kind   string // empty means any
	Cursor string // of the page before; empty for the first page
	Limit  int
	// Operator is whether the reader may see reasons that may have phone numbers.
	Operator bool
}

// Actions lists a page of actions, newest first. next is the cursor of the next page; empty on the
// last page.
func Actions(
	ctx context.Context, l *ledger.Ledger, p *ActionsPage,
) (page []Action, next string, err error) {
	filter := ledger.ActionFilter{Kind: ledger.ActionKind(p.Kind)}
	if p.Cursor != "" {
		if filter.After, err = actionOf(p.Cursor); err != nil {
			return nil, "", err
		}
	}
	found, err := l.Audits.Actions(ctx, &filter, p.Limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(found) > p.Limit {
		found = found[:p.Limit]
		next = cursorOf(&found[p.Limit-1])
	}
	page = make([]Action, len(found))
	for i := range found {
		a := &found[i]
		page[i] = Action{
			ID: a.ID, At: a.At, Login: a.Login, Author: a.Author, Via: string(a.Via),
			Action: a.Name, Subject: a.Subject,
			Kind: string(a.Kind), Detail: a.Detail, Reason: a.Reason,
		}
		if a.Private() && !p.Operator {
			page[i].Reason = ""
		}
	}
	return page, next, nil
}

func cursorOf(a *ledger.Action) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %d %s", a.At.UnixMicro(),
		a.ID, a.Part, a.Kind))
}

// actionOf reads from a cursor the last action of the previous page.
func actionOf(cursor string) (*ledger.Action, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	var micros int64
	var a ledger.Action
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "%d %d %d %s", &micros, &a.ID, &a.Part, &a.Kind)
	}
	if err != nil || micros < 0 || micros > mostMicros {
		return nil, ErrCursor
	}
	a.At = time.UnixMicro(micros)
	return &a, nil
}
