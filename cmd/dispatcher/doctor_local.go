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
)

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
