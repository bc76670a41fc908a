package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

// checkLimits checks what the limits of the routing in force leave.
func (ck *checker) checkLimits(ctx context.Context, limits *ledger.Limits) []finding {
	if ck.routing == nil {
		return nil // the check of the routing has reported it
	}
	out := closedFindings(ck.routing)
	present, err := limits.Present(ctx)
	if err != nil {
		return append(out, broken("limits", postgresTrouble(ck.settings, err)))
	}
	out = append(out, spentFindings(ck.routing, &present)...)
	return append(out, aheadFindings(ck.routing, &present)...)
}

// closedFindings warns of channels that a limit of 0 closes, and of routes without an open channel.
func closedFindings(doc *config.Routing) []finding {
	var out []finding
	for i := range doc.Channels {
		c := &doc.Channels[i]
		if l := control.Closing(c); l != nil && c.State == config.Enabled {
			out = append(out, warned("limit "+l.Key().On(c.Name),
				"it is 0, so channel "+c.Name+" takes nothing",
				fmt.Sprintf(`raise it with "dispatcher limits set %s --window %s --unit %s", if `+
					`that is not meant`, c.Name, l.Window, l.Unit)))
		}
	}
	for i := range doc.Limits {
		if l := &doc.Limits[i]; l.Closed() {
			out = append(out, warned("limit "+l.Key().On(""),
				"it is 0 over all channels, so what it counts waits until it expires",
				`raise it with "dispatcher limits set --all-channels", if that is not meant`))
		}
	}
	for _, route := range control.IdleRoutes(doc) {
		out = append(out, warned("route "+route, "none of its channels takes messages: each is "+
			"drained, switched off or closed by a limit of 0",
			`see "dispatcher channel list" and "dispatcher limits show"; enable one or raise `+
				`its limit`))
	}
	return out
}

// spentFindings warns of limits that are used up while messages wait for them. Limits of a second
// recover too soon to matter; the status reports budgets.
func spentFindings(doc *config.Routing, present *ledger.Present) []finding {
	now := status.NewLimits(0, doc, present, nil)
	var out []finding
	look := func(channel string, limits []status.Limit) {
		for i := range limits {
			l := &limits[i]
			if l.Key.Window == admission.Second || l.Key.Window == admission.Prepaid ||
				l.Waiting == 0 || l.Free.Units > 0 || l.ConfiguredMax.Units == 0 {
				continue
			}
			out = append(out, warned("limit "+l.Key.On(channel),
				fmt.Sprintf("%s of %s are granted, and %s", l.Granted, l.Sum(l.Max),
					waitFor(l.Waiting)),
				fmt.Sprintf(`its next window begins at %s (%s); "dispatcher limits set" raises it`,
					l.Ends, now.Timezone)))
		}
	}
	for i := range now.Channels {
		look(now.Channels[i].Channel, now.Channels[i].Limits)
	}
	look("", now.Limits)
	return out
}

func waitFor(messages int64) string {
	if messages == 1 {
		return "1 message waits for it"
	}
	return number(messages) + " messages wait for it"
}

// aheadFindings warns of limits whose window begins in the future.
func aheadFindings(doc *config.Routing, present *ledger.Present) []finding {
	now := status.NewLimits(0, doc, present, nil)
	var out []finding
	eachAhead(now, func(channel string, l *status.Limit) {
		out = append(out, warned("limit "+l.Key.On(channel),
			aheadWords(now, l)+": "+aheadCause+"; "+aheadEffect(l),
			"set the database's clock right, then start the window of now: "+restartCommand(channel,
				l.Key)))
	})
	return out
}

// checkListen tries the address of the admin server. A dispatcher that already listens there is
// fine.
func (ck *checker) checkListen(ctx context.Context) []finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	address := ck.settings.Listen
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = listener.Close() // nobody has connected
		if openAddress(address) {
			return []finding{warned("listen", address+" is free, and other networks may reach it: "+
				"metrics and profiles are there", listenAdvice)}
		}
		return []finding{fine("listen", "%s is free", address)}
	case errors.Is(err, syscall.EADDRINUSE) && healthy(ctx, address):
		return []finding{fine("listen", "a dispatcher runs at %s", address)}
	case errors.Is(err, syscall.EADDRINUSE):
		return []finding{broken("listen", fmt.Errorf("%s of DISPATCHER_LISTEN is taken: stop what "+
			"listens there, or choose another port", address))}
	}
	return []finding{broken("listen", fmt.Errorf("%s of DISPATCHER_LISTEN cannot be listened on "+
		"(%s): choose an address of this machine", address, app.Cause(err)))}
}

// healthTimeout is longer than a dispatcher on this machine takes to answer.
const healthTimeout = time.Second

// healthy reports whether a dispatcher answers at an address.
func healthy(ctx context.Context, address string) bool {
	return answers(ctx, address, "/healthz", http.StatusOK)
}

// answers reports whether a page at an address answers with a status.
func answers(ctx context.Context, address, page string, status int) bool {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+page, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // only the status matters
	return answer.StatusCode == status
}

// checkWebhooks tries the address that providers call, and its certificate. A dispatcher that
// already listens there is fine.
func (ck *checker) checkWebhooks(ctx context.Context) []finding {
	const check = "webhooks"
	s := ck.settings
	secure, err := receive.TLSFiles{
		Certificate: s.ReceiptsTLSCertFile, Key: s.ReceiptsTLSKeyFile,
		ClientAuthorities: s.ReceiptsTLSClientCAFile,
	}.Config()
	if err != nil {
		return []finding{broken(check, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.ReceiptsListen)
	switch {
	case err == nil:
		_ = listener.Close() // nobody has connected
		return []finding{fine(check, "%s is free", s.ReceiptsListen)}
	case errors.Is(err, syscall.EADDRINUSE) && (secure != nil || webhooksAnswer(ctx,
		s.ReceiptsListen)):
		return []finding{fine(check, "%s is taken, by a dispatcher as it seems", s.ReceiptsListen)}
	case errors.Is(err, syscall.EADDRINUSE):
		return []finding{broken(check, fmt.Errorf("%s of DISPATCHER_RECEIPTS_LISTEN is taken: "+
			"stop what listens there, or choose another port", s.ReceiptsListen))}
	}
	return []finding{broken(check, fmt.Errorf("%s of DISPATCHER_RECEIPTS_LISTEN cannot be "+
		"listened on (%s): choose an address of this machine", s.ReceiptsListen, app.Cause(err)))}
}

// webhooksAnswer reports whether the server at an address may be the webhooks of a dispatcher,
// which have no pages.
func webhooksAnswer(ctx context.Context, address string) bool {
	return answers(ctx, address, "/receipts/", http.StatusNotFound)
}
