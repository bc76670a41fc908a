package app

import (
	"maps"
	"sync/atomic"

	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/provider"
)

// hearers are the channels of the routing in force whose providers call back. A change replaces all of them at
// once. The zero value has none.
type hearers struct {
	set atomic.Pointer[map[string]provider.CallbackReader] // nil for a channel whose settings cannot be used here
}

var _ receive.Channels = (*hearers)(nil)

// Listener is that of a channel.
func (h *hearers) Listener(channel string) (l provider.CallbackReader, known bool) {
	if set := h.set.Load(); set != nil {
		l, known = (*set)[channel]
	}
	return l, known
}

// change makes a transition's channels those that hear, and returns what takes that back. Channels that are no
// part of it are not heard any more.
func (h *hearers) change(t *transition) (undo func()) {
	before := h.set.Load()
	next := map[string]provider.CallbackReader{}
	for name := range maps.Keys(t.live) {
		if before != nil && t.opened[name] == nil {
			if l, known := (*before)[name]; known {
				next[name] = l
			}
		}
	}
	for name, opened := range t.opened {
		if l, ok := hears(opened); ok {
			next[name] = l
		}
	}
	h.set.Store(&next)
	return func() { h.set.Store(before) }
}

// hears returns the listener of an opened channel; ok is false when its provider never calls.
func hears(opened provider.Channel) (l provider.CallbackReader, ok bool) {
	if _, broken := opened.(unusable); broken {
		return nil, true
	}
	if h, asks := opened.(interface{ Hears() bool }); asks && !h.Hears() {
		return nil, false
	}
	l, ok = opened.(provider.CallbackReader)
	return l, ok
}
