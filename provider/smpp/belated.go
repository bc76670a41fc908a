package smpp

import (
	"context"
	"sync"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// An answer to a submit that was given up is the only proof that SMPP has of what became of it: the message_id in it cannot
// be asked for otherwise. So a session remembers what it gave up, and a late yes is handed to Config.OnLate.

const (
	// maxGivenUp bounds the submits of one session whose late answer counts; the oldest are forgotten first.
	maxGivenUp = 10_000
	// maxBelated bounds the late answers of one client that could not be brought to safety, and belatedPause is how long
	// they wait before it is tried again. Those beyond are lost, as are all when the process ends.
	maxBelated   = 10_000
	belatedPause = 5 * time.Second
)

// givenUp are the keys of submits that were written and given up, by sequence_number, which no later submit of the
// connection gets. The zero value has none.
type givenUp struct {
	keys  map[uint32]string
	order []uint32 // as they were given up; some may have been taken
}

// add remembers a submit.
func (g *givenUp) add(sequence uint32, key string) {
	if g.keys == nil {
		g.keys = make(map[uint32]string)
	}
	if len(g.order) >= maxGivenUp {
		delete(g.keys, g.order[0])
		g.order = g.order[1:]
	}
	g.keys[sequence] = key
	g.order = append(g.order, sequence)
}

// take forgets a submit, whose answer has come.
func (g *givenUp) take(sequence uint32) (key string, known bool) {
	key, known = g.keys[sequence]
	delete(g.keys, sequence)
	return key, known
}

// giveUp takes a call that was written out of pending and remembers it; mu is held.
func (s *session) giveUp(c *call) {
	s.forget(c.sequence)
	if s.cfg.OnLate != nil && c.ours != "" {
		s.given.add(c.sequence, c.ours)
	}
}

// answeredLate hands over that a submit was taken which had been given up. That one was not is nothing that a receipt can
// say.
func (s *session) answeredLate(sequence uint32, status pdu.Status, messageID string) {
	s.mu.Lock()
	key, known := s.given.take(sequence)
	s.mu.Unlock()
	if known && s.cfg.outcome(status) == provider.Accepted {
		s.cfg.OnLate(provider.Receipt{Reference: messageID, Key: key, State: provider.Pending, At: time.Now()}, func(bool) {})
	}
}

// belated brings late answers to safety: what is not taken is offered again until it is.
type belated struct {
	tell func(r provider.Receipt, answer func(taken bool)) // Config.OnLate

	mu    sync.Mutex
	again []provider.Receipt // guarded by mu
}

// hear offers a late answer. It does not block.
func (b *belated) hear(r provider.Receipt) {
	var once sync.Once
	b.tell(r, func(taken bool) {
		once.Do(func() {
			if !taken {
				b.keep(r)
			}
		})
	})
}

func (b *belated) keep(r provider.Receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.again) < maxBelated {
		b.again = append(b.again, r)
	}
}

// run offers again what was not taken, until ctx ends.
func (b *belated) run(ctx context.Context) {
	tick := time.NewTicker(belatedPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.mu.Lock()
		again := b.again
		b.again = nil
		b.mu.Unlock()
		for _, r := range again {
			b.hear(r)
		}
	}
}
