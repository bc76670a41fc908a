package main

import (
	"time"

	"dispatcher/admission"
)

// aheadCause is why a window begins in the future.
const aheadCause = "the database's clock was ahead when this window was opened"

// eachAhead visits the limits whose window begins in the future.
func (now *limitsNow) eachAhead(visit func(channel string, l *limitNow)) {
	look := func(channel string, limits []limitNow) {
		for i := range limits {
			if limits[i].Ahead {
				visit(channel, &limits[i])
			}
		}
	}
	for i := range now.Channels {
		look(now.Channels[i].Channel, now.Channels[i].Limits)
	}
	look("", now.Limits)
}

// aheadSentences tell of each of them, and how to go on with the window of now.
func (now *limitsNow) aheadSentences() []string {
	var out []string
	now.eachAhead(func(channel string, l *limitNow) {
		out = append(out, "Limit "+l.key.On(channel)+": "+now.aheadWords(l)+". Most likely "+aheadCause+"; "+l.aheadEffect()+
			". If the clock is right now, start the window of now: "+restartCommand(channel, l.key))
	})
	return out
}

// aheadWords say when the window begins.
func (now *limitsNow) aheadWords(l *limitNow) string {
	return "its window begins at " + windowWords(l.WindowStart, now.zone) + " (" + now.Timezone + "), later than now"
}

// aheadEffect says what such a window does: a second has places in it alone, a longer one gives away what is left.
func (l *limitNow) aheadEffect() string {
	if l.key.Window == admission.Second {
		return "nothing passes before that"
	}
	return "until " + l.ends + " no more than what is left of it passes"
}

// restartCommand starts the window of now again.
func restartCommand(channel string, k admission.Key) string {
	words := "dispatcher limits set " + flagsOf(channel, k)
	return words + " --restart --reason TEXT"
}

// flagsOf name a limit on the command line.
func flagsOf(channel string, k admission.Key) string {
	words := quoted(channel)
	if channel == "" {
		words = "--all-channels"
	}
	return words + " " + keyFlags(k)
}

// keyFlags name a limit among those of its channel.
func keyFlags(k admission.Key) string {
	words := "--window " + k.Window.String()
	if k.Unit != admission.Messages {
		words += " --unit " + k.Unit.String()
	}
	if k.Scope.Tenant != "" {
		words += " --tenant " + quoted(k.Scope.Tenant)
	}
	if k.Scope.Prefix != "" {
		words += " --prefix " + quoted(k.Scope.Prefix)
	}
	return words
}

// windowWords are a window with its date, in the business time zone.
func windowWords(start time.Time, zone *time.Location) string {
	return start.In(zone).Format("2 Jan 2006 15:04:05")
}
