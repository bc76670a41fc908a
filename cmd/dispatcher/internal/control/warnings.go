package control

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
)

// limitEdit is one limit that a change of the routing adds or alters.
type limitEdit struct {
	channel string
	before  *admission.Limit // nil for a new one
	after   *admission.Limit
}

// limitEdits returns the limits that were added or changed between two documents.
func limitEdits(before, after *config.Routing) []limitEdit {
	var edits []limitEdit
	compare := func(channel string, limits []admission.Limit) {
		old := before.LimitsOf(channel)
		for i := range limits {
			e := limitEdit{channel: channel, after: &limits[i]}
			if at := slices.IndexFunc(old,
				func(l admission.Limit) bool { return l.Key() == limits[i].Key() }); at >= 0 {
				e.before = &old[at]
			}
			if e.before == nil || !e.before.Equal(e.after) {
				edits = append(edits, e)
			}
		}
	}
	for i := range after.Channels {
		compare(after.Channels[i].Name, after.Channels[i].Limits)
	}
	compare("", after.Limits)
	return edits
}

// name is the name of the limit, as in all commands.
func (e *limitEdit) name() string { return e.after.Key().On(e.channel) }

// closes reports whether the change sets a limit to 0, which admits nothing.
func (e *limitEdit) closes() bool {
	return e.after.Closed() && (e.before == nil || !e.before.Closed())
}

// warnOfLimits adds warnings of limits that admit nothing any more, and of bursts that leave little
// of a limit. A dry run has them too.
func (d *Draft) warnOfLimits(done *Changed) {
	edits := limitEdits(d.Base(), done.Routing)
	for i := range edits {
		e := &edits[i]
		if e.closes() {
			done.Warnings = append(done.Warnings, closedBy(e.channel, e.after.Scope)...)
		}
		if words := burstWarning(done.Routing, e); words != "" {
			done.Warnings = append(done.Warnings, words)
		}
	}
	done.Warnings = append(done.Warnings, idleWarnings(d.Base(), done.Routing)...)
}

// warnOfGranted adds warnings of lowered limits whose running window has granted more than the new
// limit. It must be called after the change is in force, because until then more is granted.
func (d *Draft) warnOfGranted(ctx context.Context, done *Changed) error {
	granted, err := d.grantedAlready(ctx, done.Routing, limitEdits(d.Base(), done.Routing))
	done.Warnings = append(done.Warnings, granted...)
	return err
}

// grantedAlready returns a warning for each lowered limit whose running window is above it: nothing
// more is admitted until the window ends. Windows of a second are left out: they end before anybody
// reads the warning.
func (d *Draft) grantedAlready(
	ctx context.Context, after *config.Routing, edits []limitEdit,
) ([]string, error) {
	edits = slices.DeleteFunc(slices.Clone(edits), func(e limitEdit) bool {
		return e.before == nil || e.after.Max >= e.before.Max || e.after.Window == admission.Second
	})
	if len(edits) == 0 {
		return nil, nil
	}
	present, err := d.ledger.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	now := &status.Counters{Present: &present, Zone: after.Timezone}
	var warnings []string
	for i := range edits {
		shown := now.Limit(edits[i].channel, edits[i].after, admission.Ease{})
		if shown.Granted.Units > shown.ConfiguredMax.Units {
			warnings = append(warnings, fmt.Sprintf(
				"The running window of %s has granted %s already: it takes no more before it ends "+
					"(%s, %s), and the new max holds from then on.",
				edits[i].name(), shown.Sum(shown.Granted), shown.Ends, after.Timezone))
		}
	}
	return warnings, nil
}

// closedBy returns the warning of a limit of 0 for a tenant or a prefix. idleWarnings has the
// warnings of whole channels.
func closedBy(channel string, scope admission.Scope) []string {
	who := map[bool]string{true: "Messages of tenant " + scope.Tenant, false: "Messages to " +
		scope.Prefix}[scope.Tenant != ""]
	switch {
	case channel == "":
		return []string{who + " wait until the limit is raised, or they expire: it stands over " +
			"all channels."}
	case scope != admission.Scope{}:
		return []string{fmt.Sprintf("%s find no room on channel %s: they go to others or wait.",
			who, channel)}
	}
	return nil
}

// burstWarning returns a warning if a burst leaves less than half of the limit for the rest of the
// window. It does not warn of the default burst, which is that large only if a message would not
// fit otherwise.
func burstWarning(doc *config.Routing, e *limitEdit) string {
	l := e.after
	sustained := l.Sustained()
	same := e.before != nil && e.before.Burst == l.Burst && e.before.Max == l.Max &&
		e.before.Sliding
	if l.Max == 0 || 2*sustained >= l.Max || same || l.Burst == doc.DefaultBurst(e.channel, l) {
		return ""
	}
	return fmt.Sprintf("%s: %s, which is less than half of its max of %d. A smaller burst lets "+
		"more through.", e.name(), config.BurstWords(l), l.Max)
}

// idleWarnings returns a warning for each route that loses its last channel that takes messages.
func idleWarnings(before, after *config.Routing) []string {
	var warnings []string
	for _, route := range after.IdleRoutes() {
		if was := before.Route(route); was == nil || !before.Idle(was) {
			warnings = append(warnings, fmt.Sprintf("Route %s has no channel left that takes "+
				"messages: they wait until one does.", route))
		}
	}
	return warnings
}

// warnOfFiles adds warnings of files that new or changed settings of channels name and that are not
// on this machine. They are not errors, because the instances may run on machines that have them.
func (d *Draft) warnOfFiles(done *Changed) {
	if d.secrets == nil {
		return
	}
	for i := range done.Routing.Channels {
		c := &done.Routing.Channels[i]
		if c.Test || c.Provider == "sandbox" || sameSettings(d.Base(), c) {
			continue
		}
		if missing := missingFiles(c, d.secrets.Read); len(missing) > 0 {
			done.Warnings = append(done.Warnings, fmt.Sprintf(
				"Channel %s names %s, which cannot be read in the secrets folder of this machine, "+
					"%s (DISPATCHER_SECRETS_DIR): "+
					"see that it lies in that of the dispatchers, or the channel will not connect.",
				c.Name, strings.Join(missing, ", "), d.secrets.Path()))
		}
	}
}

// sameSettings reports whether the document before had the channel with the same settings.
func sameSettings(before *config.Routing, c *config.Channel) bool {
	old := before.Channel(c.Name)
	return old != nil && old.Provider == c.Provider && old.Test == c.Test &&
		reflect.DeepEqual(old.Settings, c.Settings)
}

// missingFiles returns the files that a channel's adapter would read and readFile cannot.
func missingFiles(c *config.Channel, readFile func(string) ([]byte, error)) []string {
	var missing []string
	_ = app.Faults(c, func(name string) ([]byte, error) { // faults in the contents do not matter here
		content, err := readFile(name)
		if err != nil && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return content, err
	})
	return missing
}
