package web

import (
	"dispatcher/provider"
	"dispatcher/provider/settings"
)

// Environment is what a channel gets from its process beside its settings.
type Environment struct {
	// ReadFile reads the files that settings name.
	ReadFile func(name string) ([]byte, error)
	// Callback is the public URL to which the provider posts receipts and inbound messages of this channel; empty
	// when this deployment has none, and then none are asked for.
	Callback string
}

// OpenFunc makes a channel of settings: each adapter's Open is one. Its error joins all faults of the settings,
// each under its key. It reads files and makes no connection.
type OpenFunc func(values map[string]any, o Environment) (provider.Channel, error)

// Adapter is what each adapter's channel is.
type Adapter interface {
	provider.Channel
	provider.Capable
	provider.CallbackReader
}

// Open is what an adapter's Open does: parse checks the settings and reads the files that they name, and make returns a
// channel for what they say.
func Open[C any, A Adapter](values map[string]any, o Environment, parse func(map[string]any, Environment) (C, error), make func(C) A) (provider.Channel, error) {
	cfg, err := parse(values, o)
	if err != nil {
		return nil, err
	}
	return make(cfg), nil
}

// Concurrency is how many calls a channel with such settings can have under way at once.
func Concurrency(values map[string]any) int {
	r := settings.New(map[string]any{"connections": values["connections"]}, nil)
	if n := r.Integer("connections", 1, maxConnections); n > 0 && r.Err() == nil {
		return n
	}
	return DefaultConnections
}
