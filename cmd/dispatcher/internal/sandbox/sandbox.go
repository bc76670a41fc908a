package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"dispatcher/provider"
)

// Config says what is played and where its accounts lie.
type Config struct {
	Plan Plan
	// Folder is for the secrets of the accounts; it is made when it is missing.
	Folder string
	// Receipts is where the dispatcher listens for receipts, such as http://127.0.0.1:8081: what accounts call that have
	// one address for all their messages. Others are told the address with each message.
	Receipts string
}

// Sandbox are running carriers.
type Sandbox struct {
	cfg      Config
	carriers []*played
	inbounds atomic.Uint64 // messages of subscribers
}

// played is a carrier at work.
type played struct {
	Carrier
	settings map[string]any // of its channel
	tally    *tally
	running  carrier
}

// carrier is a server of either kind.
type carrier interface {
	// address is host:port, or the URL where an API begins.
	address() string
	// unread counts what was not understood.
	unread() int
	// callsRefused counts receipts that the dispatcher did not take, each time that they were sent.
	callsRefused() int
	// inbound sends a message of a subscriber.
	inbound(ctx context.Context, in provider.Inbound) error
	close()
}

var (
	_ carrier = (*webCarrier)(nil)
	_ carrier = (*smppCarrier)(nil)
)

// Start brings all carriers up. On an error none is left running.
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
	// Ids begin where those of an earlier run cannot be: a carrier never gives the same twice.
	first := uint64(time.Now().UnixMilli()) << idBits //nolint:gosec // After 1970.
	for i := range cfg.Plan.Carriers {
		if err := s.start(&cfg.Plan.Carriers[i], first); err != nil {
			s.Close()
			return nil, fmt.Errorf("carrier %s: %w", cfg.Plan.Carriers[i].Name, err)
		}
	}
	return s, nil
}

// Secrets is the folder with the secrets of the accounts, an absolute path.
func (s *Sandbox) Secrets() string { return s.cfg.Folder }

// idBits leaves room for 128 ids a millisecond; some vendors have 48 bits for the whole.
const idBits = 7

func (s *Sandbox) start(c *Carrier, first uint64) error {
	files := &secrets{folder: s.cfg.Folder, prefix: c.Name}
	v := vendorOf(c.Provider)
	callback := strings.TrimRight(s.cfg.Receipts, "/") + "/receipts/" + c.Name
	a := v.open(files, callback)
	if files.err != nil {
		return files.err
	}
	p := &played{Carrier: *c, settings: a.settings, tally: &tally{count: Count{Channel: c.Name, Provider: c.Provider}}}
	var err error
	if a.shape == nil {
		p.running, err = startSMPP(c, &a, first, p.tally)
	} else {
		p.running, err = startWeb(c, v, &a, &setting{first, callback, p.tally})
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

// Place is where a carrier listens.
type Place struct {
	Channel  string `json:"channel"`
	Provider string `json:"provider"`
	Address  string `json:"address"`
}

// Places are where the carriers listen, in the order of the plan.
func (s *Sandbox) Places() []Place {
	places := make([]Place, len(s.carriers))
	for i, c := range s.carriers {
		places[i] = Place{c.Name, c.Provider, c.running.address()}
	}
	return places
}

// Counts are what the carriers have seen so far, in the order of the plan.
func (s *Sandbox) Counts() []Count {
	counts := make([]Count, len(s.carriers))
	for i, c := range s.carriers {
		counts[i] = c.tally.now()
		counts[i].Unread, counts[i].CallsRefused = c.running.unread(), c.running.callsRefused()
	}
	return counts
}

// Close ends all carriers, and receipts that are still to come.
func (s *Sandbox) Close() {
	for _, c := range s.carriers {
		c.running.close()
	}
}

// chance is a part of at most d.
func chance(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// errNoFile is returned for a routing document without a name.
var errNoFile = errors.New("name a file for the routing document")
