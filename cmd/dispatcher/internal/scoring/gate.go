package scoring

import (
	"context"
	"sync"
)

// maxConnections bounds the concurrent calls of one process to one function, and so its connections
// to it.
const maxConnections = 64

// gate admits questions to one function, each as a whole: an admitted question can make all its
// calls at once, so while its deadline runs it waits only for the function. Questions are served in
// the order in which they came.
type gate struct {
	turn chan struct{} // holds one token; its holder may collect from free
	free chan struct{} // one token for each call that may be made

	guests int // guarded by gates.mu: questions inside or waiting
}

func newGate() *gate {
	g := &gate{turn: make(chan struct{}, 1), free: make(chan struct{}, maxConnections)}
	g.turn <- struct{}{}
	g.leave(maxConnections)
	return g
}

// enter blocks until there is room for that many calls, at most maxConnections. On error it holds
// none.
func (g *gate) enter(ctx context.Context, calls int) error {
	select {
	case <-g.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { g.turn <- struct{}{} }()
	for got := range calls {
		select {
		case <-g.free:
		case <-ctx.Done():
			g.leave(got)
			return ctx.Err()
		}
	}
	return nil
}

// leave frees that many calls.
func (g *gate) leave(calls int) {
	for range calls {
		g.free <- struct{}{}
	}
}

// gates has a gate for each function that is being asked.
type gates struct {
	mu sync.Mutex
	of map[identity]*gate // guarded by mu
}

func newGates() *gates { return &gates{of: map[identity]*gate{}} }

// arrive returns the gate of a function. Each call of arrive needs one of depart.
func (g *gates) arrive(id identity) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.of[id]
	if at == nil {
		at = newGate()
		g.of[id] = at
	}
	at.guests++
	return at
}

// depart deletes the gate with its last guest, because the routing may never name the function
// again.
func (g *gates) depart(id identity) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.of[id]
	if at.guests--; at.guests == 0 {
		delete(g.of, id)
	}
}
