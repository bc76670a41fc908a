package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Compile turns a routing document, which has been validated, into what the pipeline
// works with. Draws go by the effective weights. It reads no file, so the tokens of scoring functions
// are missing.
func Compile(doc *config.Routing, version int64) (*dispatch.Routing, error) {
	r := &dispatch.Routing{
		Version: version,
		Zone:    doc.Timezone,
		Limits:  doc.Limits,
		Lanes:   make(map[string]dispatch.Lane, len(doc.Lanes)),
		Country: numbers.NewCountries().Of,
		Blocked: dispatch.Blocked{
			Prefixes: doc.Blocked.Prefixes, Countries: doc.Blocked.Countries, CallingCodes: numbers.MainCallingCodes(doc.Blocked.Countries),
		},
	}
	if doc.Blocked.Premium {
		r.Blocked.Premium = numbers.Premium
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
		r.Lanes[lane.Name] = dispatch.Lane{
			Name: lane.Name, Order: i, TTL: lane.TTL, MaxWaiting: lane.MaxWaiting,
			ResendOnce: lane.Ambiguous == "resend_once", Clarify: steps(lane.Clarify), ClarifyFor: lane.ClarifyFor,
			IgnoreOptOut: lane.IgnoreOptOut,
		}
	}
	return r, nil
}

// steps are the ways of a lane to clear up a doubt; the document has the ledger's words.
func steps(words []string) []ledger.Step {
	out := make([]ledger.Step, len(words))
	for i, word := range words {
		out[i] = ledger.Step(word)
	}
	return out
}

// untilReceipt is the word of the document for attempts that hold their active slot until a receipt comes.
const untilReceipt = "receipt"

func compileChannel(c *config.Channel) dispatch.Channel {
	out := dispatch.Channel{
		Name: c.Name, Capacity: c.Capacity, State: channelStates[c.State], Labels: c.Labels,
		Price: CompilePrice(&c.Price), Senders: compileSenders(&c.Senders),
		Limits: c.Limits, Policy: c.Policy, Hold: c.Active.Hold, UntilReceipt: c.Active.Until == untilReceipt,
		AwaitReceipts: Awaits(c), Account: account(c),
	}
	adapt(c, &out)
	return out
}

// account stands for the kind and the settings of a channel, in a few digits.
func account(c *config.Channel) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %t %v", c.Provider, c.Test, c.Settings) // maps are printed in the order of their keys
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// CompilePrice turns the price lists of a channel into what the pipeline works with.
func CompilePrice(p *config.Price) dispatch.Price {
	lists := make([]dispatch.PriceList, len(p.Lists))
	for i, l := range p.Lists {
		lists[i] = dispatch.PriceList{From: l.From, Default: l.Default, Prefixes: l.Prefixes, Countries: l.Countries, Networks: l.Networks}
	}
	return dispatch.NewPrice(p.Currency, lists...)
}

func compileSenders(s *config.Senders) dispatch.Senders {
	out := dispatch.Senders{Default: s.Default}
	for _, r := range s.Rules {
		out.Rules = append(out.Rules, dispatch.SenderRule{Countries: r.Countries, Allow: r.Allow, IDs: r.IDs, From: r.From})
	}
	return out
}

// channelStates maps the words of the document; its validation knows no others.
var channelStates = map[config.State]dispatch.ChannelState{
	config.Enabled:  dispatch.Enabled,
	config.Draining: dispatch.Draining,
	config.Disabled: dispatch.Disabled,
}

func compileRoute(route *config.Route, index map[string]int) (dispatch.Route, error) {
	out := dispatch.Route{
		Name: route.Name, Mode: dispatch.Mode(route.Mode), Fallback: dispatch.Ranker(route.Fallback),
		Scoring: compileScoring(&route.Scoring), Wait: route.Wait, MaxSegments: route.MaxSegments, Substitute: route.Substitute,
		PriceCap:        route.PriceCap,
		BypassSelectors: route.BypassSelectors, HoldThrottled: route.Throttled == "wait",
		Match: dispatch.Match{
			Prefixes: route.Match.Prefixes, Countries: route.Match.Countries,
			Tenants: route.Match.Tenants, Lanes: route.Match.Lanes, Labels: route.Match.Labels,
		},
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

// compileScoring turns the rule of a route around: the zero value of the pipeline's is the default.
func compileScoring(s *config.Scoring) dispatch.Scoring {
	out := dispatch.Scoring{Expression: s.Expression, Ascending: !s.Descending}
	if f := s.Function; f != nil {
		out.Function = &dispatch.Function{
			URL: f.URL, AllowPrivate: f.AllowPrivate, Parameters: f.Parameters, Batch: f.Batch, BatchSize: f.BatchSize, Deadline: f.Deadline, Cache: f.Cache,
		}
	}
	return out
}
