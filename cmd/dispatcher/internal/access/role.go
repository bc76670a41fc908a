package access

import (
	"fmt"
	"strings"
)

// Role is what a caller may do. The values are bits: a caller of an OIDC issuer may have several
// roles at once. The zero value may do nothing.
type Role int

// The roles. See the table in May.
const (
	None   Role = 0
	Viewer Role = 1 << (iota - 1)
	Operator
	Finance
	Admin
	Sender
)

// roleNames lists the roles with their names.
var roleNames = []struct {
	role Role
	name string
}{
	{Viewer, "viewer"},
	{Operator, "operator"},
	{Finance, "finance"},
	{Sender, "sender"},
	{Admin, "admin"},
}

// RoleNames lists the names in a sentence.
const RoleNames = "viewer, operator, finance, sender or admin"

// String is the name of the role, or the names of all its roles joined by +.
func (r Role) String() string {
	var names []string
	for _, n := range roleNames {
		if r&n.role != 0 {
			names = append(names, n.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "+")
}

// ParseRole reads one role by its name.
func ParseRole(name string) (Role, error) {
	for _, n := range roleNames {
		if n.name == name {
			return n.role, nil
		}
	}
	return None, fmt.Errorf("there is no role %q; choose %s", name, RoleNames)
}

// Action is a kind of request. The zero value is allowed to nobody.
type Action int

// The actions.
const (
	// View reads operational state: status, routing and its history, messages, ambiguous
	// submissions, dead letters, live counters.
	View Action = iota + 1
	// Operate changes it: routing, weights, ramps, channels, limits, pauses, cancellations,
	// resolutions.
	Operate
	// Report reads what traffic cost and how it was shared: reports, contracts, reconciliation.
	Report
	// Audit reads who did what.
	Audit
	// Send sends messages.
	Send
)

// String names the action.
func (a Action) String() string {
	switch a {
	case View:
		return "view"
	case Operate:
		return "operate"
	case Report:
		return "report"
	case Audit:
		return "audit"
	case Send:
		return "send"
	}
	return "nothing"
}

// Actions lists all of them.
func Actions() []Action { return []Action{View, Operate, Report, Audit, Send} }

// May reports whether the role allows the action. This is the whole table.
func (r Role) May(a Action) bool {
	switch a {
	case View:
		return r&(Viewer|Operator|Admin) != 0
	case Operate:
		return r&(Operator|Admin) != 0
	case Report, Audit:
		return r&(Finance|Admin) != 0
	case Send:
		return r&(Sender|Admin) != 0
	}
	return false
}
