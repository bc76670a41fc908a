package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/config"
)

// checkWebhooks tries the address that providers call, and its certificate. An instance that runs
// there already is fine.
func (p *patient) checkWebhooks(ctx context.Context) []finding {
	const check = "webhooks"
	s := p.settings
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
	case errors.Is(err, syscall.EADDRINUSE) && (secure != nil || hears(ctx, s.ReceiptsListen)):
		return []finding{fine(check, "%s is taken, by a dispatcher as it seems", s.ReceiptsListen)}
	case errors.Is(err, syscall.EADDRINUSE):
		return []finding{broken(check, fmt.Errorf("%s of DISPATCHER_RECEIPTS_LISTEN is taken: "+
			"stop what listens there, or choose another port", s.ReceiptsListen))}
	}
	return []finding{broken(check, fmt.Errorf("%s of DISPATCHER_RECEIPTS_LISTEN cannot be "+
		"listened on (%s): choose an address of this machine", s.ReceiptsListen, app.Cause(err)))}
}

// hears reports whether what answers at an address could be the webhooks of a dispatcher: they know
// no page.
func hears(ctx context.Context, address string) bool {
	return answers(ctx, address, "/receipts/", http.StatusNotFound)
}

// checkWebbed reads the settings of a channel with an HTTP API. There is no call that costs nothing
// at all of them, so that none is made.
func (p *patient) checkWebbed(ctx context.Context, check string, c *config.Channel) finding {
	if err := app.Faults(c, p.settings.Secrets().Read); err != nil {
		return finding{check, statusFail, err.Error(), "correct the settings of this channel in " +
			"the routing document"}
	}
	if host := plainChannel(c); host != "" {
		return warned(check, "numbers, texts and its secrets go to "+host+" without encryption",
			"write base_url with https")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if host := inward(ctx, c); host != "" {
		return warned(check, host+" of base_url lies in a private network, so every send fails "+
			"before it is made",
			"set allow_private: true in the settings of this channel, if that is meant")
	}
	switch {
	case p.settings.PublicURL == "" && !app.Local(c):
		return warned(check, "its settings can be used, but "+c.Provider+" is not asked for "+
			"receipts, because it would not know where to call",
			"set DISPATCHER_PUBLIC_URL to the address under which providers reach "+
				""+p.settings.ReceiptsListen)
	}
	return fine(check, "its settings can be used; the API is called with the first message")
}
