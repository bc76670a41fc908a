// Package sandbox runs simulated carriers on this machine: SMPP and the HTTP APIs of the vendors
// that have an adapter, each with a profile of how it answers and which receipts it sends.
//
// It writes a routing document that uses them, with accounts and secrets of its own, so that
// routing, receipts and alarms can be tried without a contract. No message reaches a subscriber:
// carriers listen on loopback and call only the address of the receipts listener. The format of an
// API is defined in the vendor's test package.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/providertest"
)

// Config says which carriers run and where their secrets are.
type Config struct {
	Plan Plan
	// Folder is for the secrets of the accounts; it is created if missing.
	Folder string
	// Receipts is where the dispatcher listens for receipts, such as http://127.0.0.1:8081. Accounts
	// with one callback address for all their messages call it. Others get the address with each
	// message.
	Receipts string
}

// Sandbox is a set of running carriers.
type Sandbox struct {
	cfg      Config
	carriers []*played
	inbounds atomic.Uint64 // messages of subscribers
}

// played is a running carrier.
type played struct {
	Carrier
	settings map[string]any // of its channel
	counter  *counter
	running  carrier
}

// carrier is a server of either kind.
type carrier interface {
	// address is host:port, or the base URL of an API.
	address() string
	// unread counts requests that were not understood.
	unread() int
	// callsRefused counts receipts that the dispatcher refused, once per try.
	callsRefused() int
	// inbound sends a message of a subscriber.
	inbound(ctx context.Context, in provider.Inbound) error
	close()
}

var (
	_ carrier = (*webCarrier)(nil)
	_ carrier = (*smppCarrier)(nil)
)

// Start starts all carriers. On an error none is left running.
func Start(cfg Config) (*Sandbox, error) {
	if err := cfg.Plan.Validate(); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(cfg.Folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder for the secrets of sandbox accounts: %w", err)
	}
	cfg.Folder = folder
	s := &Sandbox{cfg: cfg}
	// A carrier must never give an id twice, so ids begin after those of earlier runs.
	first := uint64(time.Now().UnixMilli()) << idBits //nolint:gosec // After 1970.
	for i := range cfg.Plan.Carriers {
		if err := s.start(&cfg.Plan.Carriers[i], first); err != nil {
			s.Close()
			return nil, fmt.Errorf("carrier %s: %w", cfg.Plan.Carriers[i].Name, err)
		}
	}
	return s, nil
}

// Secrets is the absolute path of the folder with the secrets of the accounts.
func (s *Sandbox) Secrets() string { return s.cfg.Folder }

// idBits allows 128 ids a millisecond; some vendors have 48 bits in all.
const idBits = 7

func (s *Sandbox) start(c *Carrier, first uint64) error {
	files := &secrets{folder: s.cfg.Folder, prefix: c.Name}
	v := vendorOf(c.Provider)
	callback := strings.TrimRight(s.cfg.Receipts, "/") + "/receipts/" + c.Name
	a := v.open(files, callback)
	if files.err != nil {
		return files.err
	}
	p := &played{
		Carrier:  *c,
		settings: a.settings,
		counter:  &counter{count: Count{Channel: c.Name, Provider: c.Provider}},
	}
	var err error
	if a.shape == nil {
		p.running, err = startSMPP(c, &a, first, p.counter)
	} else {
		p.running, err = startWeb(c, v, &a, &setting{first, callback, p.counter})
	}
	if err != nil {
		return err
	}
	if a.shape == nil {
		p.settings["address"] = p.running.address()
	} else {
		p.settings["base_url"], p.settings["allow_private"] = p.running.address()+a.path, true
	}
	s.carriers = append(s.carriers, p)
	return nil
}

// Endpoint is where a carrier listens.
type Endpoint struct {
	Channel  string `json:"channel"`
	Provider string `json:"provider"`
	Address  string `json:"address"`
}

// Endpoints are where the carriers listen, in the order of the plan.
func (s *Sandbox) Endpoints() []Endpoint {
	endpoints := make([]Endpoint, len(s.carriers))
	for i, c := range s.carriers {
		endpoints[i] = Endpoint{c.Name, c.Provider, c.running.address()}
	}
	return endpoints
}

// Counts are what the carriers have seen so far, in the order of the plan.
func (s *Sandbox) Counts() []Count {
	counts := make([]Count, len(s.carriers))
	for i, c := range s.carriers {
		counts[i] = c.counter.now()
		counts[i].Unread, counts[i].CallsRefused = c.running.unread(), c.running.callsRefused()
	}
	return counts
}

// Close stops all carriers; receipts that are due later are not sent.
func (s *Sandbox) Close() {
	for _, c := range s.carriers {
		c.running.close()
	}
}

// chance is a random part of d.
func chance(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// errNoFile is returned for a routing document without a name.
var errNoFile = errors.New("name a file for the routing document")

// errNoInbound is returned by carriers whose API has no inbound messages.
var errNoInbound = errors.New("the API of this carrier has no messages of subscribers")

// Inbound sends a message of a subscriber to the dispatcher, through the carrier of a channel. An
// HTTP carrier waits for the answer and returns an error if the message was not taken. An SMPP
// carrier sends it once there is a bind, and again until it is taken.
func (s *Sandbox) Inbound(ctx context.Context, channel string, in provider.Inbound) error {
	for _, c := range s.carriers {
		if c.Name != channel {
			continue
		}
		if in.From == "" || in.To == "" || in.Text == "" {
			return errors.New("name from, to and text")
		}
		in.At = time.Now()
		in.Reference = vendorOf(c.Provider).reference(s.inboundID(in.At))
		return c.running.inbound(ctx, in)
	}
	return fmt.Errorf("there is no channel %q; choose one of %s", channel,
		strings.Join(s.names(), ", "))
}

// inboundID is the number for the id of an inbound message. It has 48 bits, like those of other
// messages.
func (s *Sandbox) inboundID(at time.Time) uint64 {
	millis := uint64(at.UnixMilli()) //nolint:gosec // After 1970.
	return millis<<idBits | s.inbounds.Add(1)%(1<<idBits)
}

// names are the names of the channels.
func (s *Sandbox) names() []string {
	names := make([]string, len(s.carriers))
	for i, c := range s.carriers {
		names[i] = c.Name
	}
	return names
}

// Count is what one carrier has read and sent.
type Count struct {
	Channel   string `json:"channel"`
	Provider  string `json:"provider"`
	Submitted int    `json:"submitted"`
	Accepted  int    `json:"accepted"`
	Rejected  int    `json:"rejected"`
	Refused   int    `json:"refused"`
	Throttled int    `json:"throttled"`
	Lost      int    `json:"lost"` // never answered, or the connection was dropped
	// Receipts are counted once, no matter how often they are sent and whether the dispatcher takes
	// them.
	Delivered   int `json:"delivered"`
	Undelivered int `json:"undelivered"`
	WithoutWord int `json:"without_receipt"` // accepted, and no receipt follows
	// CallsRefused counts callbacks and deliver_sm with receipts that the dispatcher refused, or that
	// did not reach it, once per try.
	CallsRefused int `json:"calls_refused"`
	// Unread are requests that the carrier did not understand: a fault of the adapter or of an
	// account.
	Unread int `json:"unread"`
}

// counter has the counts of one carrier. It is safe for concurrent use.
type counter struct {
	mu    sync.Mutex
	count Count // guarded by mu
}

// submitted counts a submit by its reply.
func (c *counter) submitted(v providertest.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Submitted++
	switch v {
	case providertest.Accept:
		c.count.Accepted++
	case providertest.Reject:
		c.count.Rejected++
	case providertest.Refuse:
		c.count.Refused++
	case providertest.Throttle:
		c.count.Throttled++
	case providertest.Lose, providertest.Cut:
		c.count.Lost++
	}
}

// planned counts the receipt that an accepted submit will get.
func (c *counter) planned(n receiptPlan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case n.none:
		c.count.WithoutWord++
	case n.state == provider.Delivered:
		c.count.Delivered++
	default:
		c.count.Undelivered++
	}
}

func (c *counter) now() Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}
