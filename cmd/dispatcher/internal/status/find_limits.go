package status

import (
	"fmt"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// Closed warns of channels that a limit of 0 closes, and of routes without an open channel.
func Closed(doc *config.Routing) []Finding {
	var out []Finding
	for i := range doc.Channels {
		c := &doc.Channels[i]
		if l := c.Closing(); l != nil && c.State == config.Enabled {
			out = append(out, Warned("limit "+l.Key().On(c.Name),
				"it is 0, so channel "+c.Name+" takes nothing",
				fmt.Sprintf(`raise it with "dispatcher limits set %s --window %s --unit %s", if `+
					`that is not meant`, c.Name, l.Window, l.Unit)))
		}
	}
	for i := range doc.Limits {
		if l := &doc.Limits[i]; l.Closed() {
			out = append(out, Warned("limit "+l.Key().On(""),
				"it is 0 over all channels, so what it counts waits until it expires",
				`raise it with "dispatcher limits set --all-channels", if that is not meant`))
		}
	}
	for _, route := range doc.IdleRoutes() {
		out = append(out, Warned("route "+route, "none of its channels takes messages: each is "+
			"drained, switched off or closed by a limit of 0",
			`see "dispatcher channel list" and "dispatcher limits show"; enable one or raise `+
				`its limit`))
	}
	return out
}

// spent reports whether nothing is left of a limit. Limits of a second recover too soon to matter.
// Budgets and limits of 0 have findings of their own.
func (l *Limit) spent() bool {
	return l.Key.Window != admission.Second && l.Key.Window != admission.Prepaid &&
		l.Free.Units <= 0 && l.ConfiguredMax.Units > 0
}

// spent warns of limits that are used up while messages wait for them.
func (ls *Limits) spent() (out []Finding) {
	ls.each(func(channel string, l *Limit) {
		if !l.spent() || l.Waiting == 0 {
			return
		}
		waiters := "1 message waits for it"
		if l.Waiting > 1 {
			waiters = fmt.Sprintf("%d messages wait for it", l.Waiting)
		}
		out = append(out, Warned("limit "+l.Key.On(channel),
			fmt.Sprintf("%s of %s are granted, and %s", l.Granted, l.Sum(l.Max), waiters),
			fmt.Sprintf(`its next window begins at %s (%s); "dispatcher limits set" raises it`,
				l.Ends, ls.Timezone)))
	})
	return out
}

// spentBy names the limits of a channel that are used up; empty for none.
func (ls *Limits) spentBy(channel string) (words string) {
	ls.each(func(of string, l *Limit) {
		if of == channel && l.spent() {
			words += fmt.Sprintf("; limit %s is used up until %s (%s)", l.Key.On(channel), l.Ends,
				ls.Timezone)
		}
	})
	return words
}

// Ahead warns of limits whose window begins in the future.
func (ls *Limits) Ahead() (out []Finding) {
	ls.each(func(channel string, l *Limit) {
		if !l.Ahead {
			return
		}
		// A limit of a second has release times only in that window; a longer one can still be used up.
		effect := "until " + l.Ends + " no more than what is left of it passes"
		if l.Key.Window == admission.Second {
			effect = "nothing passes before that"
		}
		out = append(out, Warned("limit "+l.Key.On(channel),
			fmt.Sprintf("its window begins at %s (%s), later than now: the database's clock was ahead "+
				"when this window was opened; %s", WindowWords(l.WindowStart, ls.Zone), ls.Timezone,
				effect),
			"set the database's clock right, then start the window of now: dispatcher limits set "+
				Flags(channel, l.Key)+" --restart --reason TEXT"))
	})
	return out
}

// each calls visit for each limit; channel is empty for those over all channels.
func (ls *Limits) each(visit func(channel string, l *Limit)) {
	for i := range ls.Channels {
		c := &ls.Channels[i]
		for j := range c.Limits {
			visit(c.Channel, &c.Limits[j])
		}
	}
	for i := range ls.Limits {
		visit("", &ls.Limits[i])
	}
}

// Flags are the arguments that name a limit on the command line; channel is empty for a limit over
// all channels.
func Flags(channel string, k admission.Key) string {
	words := "--all-channels"
	if channel != "" {
		words = report.Quoted(channel)
	}
	return words + " " + KeyFlags(k)
}

// KeyFlags are the flags that name a limit among those of its channel.
func KeyFlags(k admission.Key) string {
	words := "--window " + k.Window.String()
	if k.Unit != admission.Messages {
		words += " --unit " + k.Unit.String()
	}
	if k.Scope.Tenant != "" {
		words += " --tenant " + report.Quoted(k.Scope.Tenant)
	}
	if k.Scope.Prefix != "" {
		words += " --prefix " + report.Quoted(k.Scope.Prefix)
	}
	return words
}

// WindowWords are the start of a window with its date, in the business time zone.
func WindowWords(start time.Time, zone *time.Location) string {
	return start.In(zone).Format("2 Jan 2006 15:04:05")
}
