package app

import (
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Compile turns a routing document, which has been validated, into what the pipeline
// works with.
func Compile(doc *config.Routing, version int64) (*dispatch.Routing, error) {
	r := &dispatch.Routing{
		Version: version,
		Zone:    doc.Timezone,
		Lanes:   make(map[string]dispatch.Lane, len(doc.Lanes)),
		Country: newCountries().of,
	}
	index := make(map[string]int, len(doc.Channels))
	for i := range doc.Channels {
		index[doc.Channels[i].Name] = i
		r.Channels = append(r.Channels, compileChannel(&doc.Channels[i]))
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
			ResendOnce: lane.Ambiguous == "resend_once",
		}
	}
	return r, nil
}

func compileChannel(c *config.Channel) dispatch.Channel {
	out := dispatch.Channel{
		Name: c.Name, Capacity: c.Capacity, State: channelStates[c.State], Labels: c.Labels,
		Price: dispatch.NewPrice(c.Price.Currency, c.Price.Default, c.Price.Prefixes),
	}
	adapt(c, &out)
	for _, limit := range c.Limits {
		if limit.Window == admission.Second && (out.PerSecond == 0 || limit.Max < out.PerSecond) {
			out.PerSecond, out.PaceUnit = limit.Max, limit.Unit
		}
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
		Name: route.Name, Wait: route.Wait, MaxSegments: route.MaxSegments, Substitute: route.Substitute,
		BypassSelectors: route.BypassSelectors, HoldThrottled: route.Throttled == "wait",
		Match: dispatch.Match{
			Prefixes: route.Match.Prefixes, Countries: route.Match.Countries,
			Tenants: route.Match.Tenants, Lanes: route.Match.Lanes, Labels: route.Match.Labels,
		},
	}
	for _, w := range route.Weights {
		out.Members = append(out.Members, index[w.Channel])
	}
	var err error
	out.Table, err = selector.NewTable(route.Entries())
	return out, err
}

// Specs are the bounds of the document's channels as the ledger keeps them.
func Specs(doc *config.Routing) []ledger.ChannelSpec {
	specs := make([]ledger.ChannelSpec, len(doc.Channels))
	for i, c := range doc.Channels {
		specs[i] = ledger.ChannelSpec{Name: c.Name, ActiveMax: c.Active.Max, Limits: c.Limits}
	}
	return specs
}

// countries finds the region of a number. A region is decided by the number's first
// digits, so answers are kept by prefix: parsing takes 20 us, remembering a tenth of one.
type countries struct {
	mu    sync.RWMutex
	known map[string]string // guarded by mu; by the first countryDigits characters
}

// countryDigits tell apart all regions that share a calling code, such as those of +1 and +44;
// maxCountries bounds the memory.
const (
	countryDigits = 9
	maxCountries  = 100_000
)

func newCountries() *countries { return &countries{known: map[string]string{}} }

func (c *countries) of(number string) string {
	prefix := number[:min(len(number), countryDigits)]
	c.mu.RLock()
	region, ok := c.known[prefix]
	c.mu.RUnlock()
	if ok {
		return region
	}
	parsed, err := phonenumbers.Parse(number, "")
	if err != nil {
		return ""
	}
	if region = strings.ToLower(phonenumbers.GetRegionCodeForNumber(parsed)); region == "" {
		return "" // an invalid number says nothing about its neighbours
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCountries {
		clear(c.known)
	}
	c.known[prefix] = region
	return region
}
