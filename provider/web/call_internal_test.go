package web

import "testing"

// TestWhatCannotBeCountedHasLeft: a connection of a kind that nobody foresaw must not make a message look unsent.
func TestWhatCannotBeCountedHasLeft(t *testing.T) {
	t.Parallel()
	var c call
	if c.left() {
		t.Error("it left without a connection")
	}
	c.got.Store(true)
	c.reused.Store(true)
	if !c.left() || c.stale() {
		t.Error("over a connection without a count it looks unsent")
	}
}
