// Package scoring asks HTTP endpoints to score the candidates of a route that is ranked by best
// worker. It is what the pipeline calls while it plans.
//
// A call is a POST of JSON, of which only route, lane, labels, selectors, candidates and the
// route's own parameters are part: never a message's number, text or id. Whatever goes wrong
// ends in one bounded word, and the pipeline scores by its default rule instead. Choosing is not
// done here.
//
//	question.go  what is asked: the body, and the key under which equal questions meet
//	answer.go    what is accepted as an answer
//	call.go      one HTTP exchange
//	ask.go       one question in as many calls as it takes, within its deadline
//	flight.go    equal questions at the same time share one asking
//	cache.go     answers that still hold
//	rest.go      functions that are left alone after a failure
package scoring

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/dispatch"
)

const (
	// maxConnections bounds the connections to one function.
	maxConnections = 32
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 16 << 10
	// idleTimeout is how long an unused connection is kept.
	idleTimeout = 30 * time.Second
)

// Config is what a Client needs.
type Config struct {
	// Registry gets the metrics of the calls.
	Registry prometheus.Registerer
}

// Client asks scoring functions. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	metrics *metrics
	cache   *cache
	flights *flights
	rests   *rests
}

var _ dispatch.Scorer = (*Client)(nil)

// New returns a Client. Close releases its connections.
func New(cfg Config) (*Client, error) {
	if cfg.Registry == nil {
		return nil, errors.New("scoring: Registry is required")
	}
	return &Client{
		http: &http.Client{
			Transport: transport(),
			// A redirect is an answer like any other that is not 200: a question goes to
			// the address in the routing document and to no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		metrics: newMetrics(cfg.Registry), cache: newCache(), flights: newFlights(), rests: newRests(),
	}, nil
}

// transport keeps connections: a question may be asked twice without harm, so the silent resend
// of net/http on a dead connection is welcome here. Answers are small, so they are not compressed
// and cannot unfold.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{KeepAlive: idleTimeout}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxConnsPerHost:        maxConnections,
		MaxIdleConnsPerHost:    maxConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// Scores asks f to score the candidates of q and blocks for at most f.Deadline, or until ctx ends.
// The answer has one value per candidate in the order of q, or the word for what
// went wrong. Values may be shared with other callers and must not be changed.
func (c *Client) Scores(ctx context.Context, f *dispatch.Function, q *dispatch.ScoreQuestion) dispatch.Scores {
	if len(q.Candidates) == 0 {
		return dispatch.Scores{}
	}
	key := keyOf(f, q)
	for {
		if values, word, ok := c.cache.get(key, time.Now()); ok {
			c.metrics.question(q.Route, answeredByCache)
			return dispatch.Scores{Values: values, Trouble: word}
		}
		flight, leads := c.flights.join(key)
		if leads {
			return c.lead(ctx, f, q, key, flight)
		}
		select {
		case <-flight.done:
		case <-ctx.Done():
			return dispatch.Scores{Trouble: dispatch.FunctionTimeout}
		}
		if !flight.abandoned {
			c.metrics.question(q.Route, answeredByOther)
			return flight.scores
		}
	}
}

// lead asks on behalf of all who want to know the same now.
func (c *Client) lead(ctx context.Context, f *dispatch.Function, q *dispatch.ScoreQuestion, key key, flight *flight) dispatch.Scores {
	defer c.flights.land(key, flight)
	function := identify(f)
	if word := c.rests.enter(function, time.Now()); word != "" {
		c.metrics.question(q.Route, answeredByRest)
		flight.scores = dispatch.Scores{Trouble: word}
		return flight.scores
	}
	c.metrics.question(q.Route, answeredByFunction)
	began := time.Now()
	values, problem := c.ask(ctx, f, q)
	took := time.Since(began)
	c.metrics.asked(q.Route, took)
	if problem.word != "" && gaveUp(ctx, took, f.Deadline) {
		c.rests.forgo(function)
		flight.abandoned = true
		return dispatch.Scores{Trouble: dispatch.FunctionTimeout}
	}
	now := time.Now()
	switch {
	case problem.word == "":
		c.rests.leave(function, "", now)
		c.cache.put(key, values, "", now, f.Cache)
	case problem.general:
		c.rests.leave(function, problem.word, now)
	default:
		c.rests.leave(function, "", now)
		c.cache.put(key, nil, problem.word, now, restTime)
	}
	flight.scores = dispatch.Scores{Values: values, Trouble: problem.word}
	return flight.scores
}

// gaveUp reports whether a question failed because its caller had no time for it, which says nothing
// about the function. A caller's ctx may well end together with the function's own deadline.
func gaveUp(ctx context.Context, took, deadline time.Duration) bool {
	return errors.Is(ctx.Err(), context.Canceled) || ctx.Err() != nil && took < deadline/2
}

// Close releases the connections. No question may be under way.
func (c *Client) Close() { c.http.CloseIdleConnections() }
