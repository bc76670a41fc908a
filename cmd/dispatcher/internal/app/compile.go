package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/selector"
)

// Compile turns a validated routing document into what the pipeline uses. Draws use the effective
// weights. It reads no file, so the tokens of scoring functions are missing.
func Compile(doc *config.Routing, version int64) (*decide.Routing, error) {
	r := &decide.Routing{
		Version: version,
		Zone:    doc.Timezone,
		Limits:  doc.Limits,
		Paused:  doc.Paused,
		Allowed: doc.Allowed,
		Lanes:   make(map[string]decide.Lane, len(doc.Lanes)),
		Country: numbers.NewCountries().Of, CallingCode: numbers.CallingCode,
		Blocked: decide.Blocked{
			Blocked: doc.Blocked, CallingCodes: numbers.MainCallingCodes(doc.Blocked.Countries),
			IsPremium: numbers.Premium,
		},
	}
	index := make(map[string]int, len(doc.Channels))
	for i := range doc.Channels {
		index[doc.Channels[i].Name] = i
		c := compileChannel(&doc.Channels[i])
		if rate, ok := doc.Rates.Rate(c.Price.Currency); ok {
			c.Price = c.Price.In(doc.Rates.Base, rate)
		}
		r.Channels = append(r.Channels, c)
	}
	for i := range doc.Routes {
		route, err := compileRoute(&doc.Routes[i], index)
		if err != nil {
			return nil, err
		}
		r.Routes = append(r.Routes, route)
	}
	for i, lane := range doc.Lanes {
		r.Lanes[lane.Name] = decide.Lane{Lane: lane, Order: i}
	}
	return r, nil
}

func compileChannel(c *config.Channel) decide.Channel {
	out := decide.Channel{
		Channel: *c, Price: CompilePrice(&c.Price), AwaitReceipts: Awaits(c), Account: account(c),
	}
	adapt(c, &out)
	return out
}

// account identifies the kind and the settings of a channel, in a few digits.
func account(c *config.Channel) string {
	h := sha256.New()
	// maps are printed in the order of their keys
	_, _ = fmt.Fprintf(h, "%s %t %v", c.Provider, c.Test, c.Settings)
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// CompilePrice indexes the price lists of a channel.
func CompilePrice(p *config.Price) decide.Price { return decide.NewPrice(p.Currency, p.Lists...) }

func compileRoute(route *config.Route, index map[string]int) (decide.Route, error) {
	out := decide.Route{Route: *route}
	if f := route.Scoring.Function; f != nil {
		copied := *f // its token will be filled in
		out.Scoring.Function = &copied
	}
	for _, name := range route.Channels {
		out.Members = append(out.Members, index[name])
	}
	if route.Weights == nil {
		return out, nil
	}
	var err error
	out.Table, err = selector.NewTable(route.Entries())
	return out, err
}
