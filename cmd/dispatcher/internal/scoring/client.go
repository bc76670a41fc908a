// Package scoring asks HTTP endpoints to score the candidates of a route that is ranked by best
// worker. The pipeline calls it while it plans.
//
// A call is a POST of JSON with only route, lane, labels, selectors, candidates and the route's own
// parameters: never a message's number, text or id. Every failure becomes one word of a closed
// list, and the pipeline scores by its default rule instead. Package scoring chooses no channel.
//
//	question.go  the body of a question, and the key by which equal questions are found
//	answer.go    what is accepted as an answer
//	call.go      one HTTP exchange
//	ask.go       one question in as many calls as needed, within its deadline
//	gate.go      how many calls a function gets at once
//	pending.go   equal questions at the same time are asked once
//	cache.go     answers that have not expired
//	pause.go     functions that are not called for a while after a failure
package scoring

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider/web"
)

const (
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 16 << 10
	// idleTimeout is how long an unused connection is kept.
	idleTimeout = 30 * time.Second
	// dialTimeout bounds a connection attempt whose question has already ended.
	dialTimeout = 5 * time.Second
)

// Config is what a Client needs.
type Config struct {
	// Registry gets the metrics of the calls.
	Registry prometheus.Registerer
}

// Client asks scoring functions. It is safe for concurrent use.
type Client struct {
	public    *http.Client // refuses private addresses
	private   *http.Client
	metrics   *metrics
	cache     *cache
	questions *questions
	states    *functionStates
	gates     *gates
}

// New returns a Client. Close releases its connections.
func New(cfg Config) (*Client, error) {
	if cfg.Registry == nil {
		return nil, errors.New("scoring: Registry is required")
	}
	return &Client{
		public: newHTTP(false), private: newHTTP(true),
		metrics: newMetrics(cfg.Registry), cache: newCache(), questions: newQuestions(),
		states: newFunctionStates(), gates: newGates(),
	}, nil
}

// newHTTP is a client with the rules for calls to providers: no proxy from the environment, because
// it would see the token, no redirect, and no private address unless the routing document allows
// it.
func newHTTP(allowPrivate bool) *http.Client {
	return &http.Client{Transport: transport(allowPrivate), CheckRedirect: web.NoRedirect}
}

// transport keeps connections. A question may be asked twice without harm, so the silent resend of
// net/http on a dead connection is fine here. Answers are small, so they are not compressed and
// cannot expand. It does not bound connections, because calls would wait for one while their
// deadline runs; the gates bound the calls.
func transport(allowPrivate bool) *http.Transport {
	t := web.NewTransport(&web.Config{ConnectTimeout: dialTimeout, AllowPrivate: allowPrivate})
	t.MaxIdleConnsPerHost = maxConnections
	t.IdleConnTimeout, t.MaxResponseHeaderBytes = idleTimeout, maxHeader
	return t
}

// client is the HTTP client for the addresses that a function may have.
func (c *Client) client(f *decide.Function) *http.Client {
	if f.AllowPrivate {
		return c.private
	}
	return c.public
}

// Scores asks f to score the candidates of q. It blocks until it is the question's turn and then
// for at most f.Deadline, or until ctx ends. The answer has one value per candidate in the order of
// q, or the word for what went wrong. Values may be shared with other callers and must not be
// changed.
func (c *Client) Scores(
	ctx context.Context, f *decide.Function, q *decide.ScoreQuestion,
) decide.Scores {
	if len(q.Candidates) == 0 {
		return decide.Scores{}
	}
	key := keyOf(f, q)
	for {
		if values, word, ok := c.cache.get(key, time.Now()); ok {
			c.metrics.question(q.Route, answeredByCache)
			return decide.Scores{Values: values, Trouble: word}
		}
		question, mustAsk := c.questions.begin(key)
		if mustAsk {
			return c.askForAll(ctx, f, q, key, question)
		}
		select {
		case <-question.done:
		case <-ctx.Done():
			return decide.Scores{Trouble: decide.FunctionTimeout}
		}
		if !question.abandoned {
			c.metrics.question(q.Route, answeredByOther)
			return question.scores
		}
	}
}

// askForAll asks on behalf of all callers with an equal question.
func (c *Client) askForAll(
	ctx context.Context, f *decide.Function, q *decide.ScoreQuestion, key key, question *pending,
) decide.Scores {
	defer c.questions.end(key, question)
	function := identify(f)
	if word := c.states.paused(function, time.Now()); word != "" {
		return c.whilePaused(q, word, question)
	}
	n, came := calls(f, q), time.Now()
	gate := c.gates.arrive(function)
	defer c.gates.depart(function)
	if err := gate.enter(ctx, n); err != nil {
		c.metrics.question(q.Route, answeredByNobody)
		question.abandoned = true
		return decide.Scores{Trouble: decide.FunctionTimeout}
	}
	defer gate.leave(n)
	began := time.Now()
	c.metrics.queued(q.Route, began.Sub(came))
	if word := c.states.begin(function, began); word != "" {
		return c.whilePaused(q, word, question)
	}
	c.metrics.question(q.Route, answeredByFunction)
	values, problem := c.ask(ctx, f, q)
	now := time.Now()
	c.metrics.asked(q.Route, now.Sub(began))
	if problem.word != "" && ctx.Err() != nil && now.Sub(began) < f.Deadline {
		// Its caller ran out of time. That says nothing about the function.
		c.states.withdraw(function)
		question.abandoned = true
		return decide.Scores{Trouble: decide.FunctionTimeout}
	}
	c.remember(f, key, values, problem, began, now)
	question.scores = decide.Scores{Values: values, Trouble: problem.word}
	return question.scores
}

// whilePaused is the answer while the function is paused.
func (c *Client) whilePaused(
	q *decide.ScoreQuestion, word string, question *pending,
) decide.Scores {
	c.metrics.question(q.Route, answeredByPause)
	question.scores = decide.Scores{Trouble: word}
	return question.scores
}

// remember caches an answer, or records the trouble of the question or of its function.
func (c *Client) remember(
	f *decide.Function, key key, values []float64, p problem, began, now time.Time,
) {
	general := ""
	if p.general {
		general = p.word
	}
	paused := c.states.end(identify(f), general, began, now)
	switch {
	case p.word == "":
		c.cache.put(key, values, "", now, f.Cache)
	case !paused:
		c.cache.put(key, nil, p.word, now, pauseTime)
	}
}

// Close releases the connections. No question may be in progress.
func (c *Client) Close() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
}
