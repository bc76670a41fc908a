package report

import (
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

func basisOf(r *decide.Ranking) Basis {
	if r == nil {
		return Basis{}
	}
	return Basis{
		RankedBy: r.By, RankedVersion: r.Version, Cursor: r.Cursor, RedrawKeyID: r.KeyID,
		Scoring: r.Scoring, Trouble: r.Trouble, More: r.More,
	}
}

// candidatesOf are those of a stored ranking; nil without one.
func candidatesOf(r *decide.Ranking) []Candidate {
	if r == nil {
		return nil
	}
	out := make([]Candidate, len(r.Candidates))
	chosen := r.Chosen()
	for i, from := range r.Candidates {
		c := &out[i]
		*c = Candidate{
			Channel: from.Channel, Score: from.Score, Reason: from.Reason,
			Eligible: new(from.Reason == ""),
		}
		if from.LastAssigned != 0 {
			c.LastAssigned = new(from.LastAssigned.Time())
		}
		if from.Reason == "" && i > chosen {
			c.Eligible, c.Reason = nil, outranked
		}
		if from.Capacity > 0 {
			c.LoadRatio = new(float64(from.Active) / float64(from.Capacity))
		}
	}
	return out
}

// passedOver are the candidates that were looked at before the chosen one; all, when none was.
func passedOver(all []Candidate) []Candidate {
	if at := slices.IndexFunc(all, func(c Candidate) bool { return c.can() }); at >= 0 {
		return all[:at]
	}
	return all
}

// completion adds to stored candidates what the message, the routing version and the draw keys
// alone tell of them.
type completion struct {
	message *ledger.Message
	doc     *config.Routing
	route   *config.Route // nil when the version is not known or does not have it any more
	keys    []selector.Key
}

func newCompletion(m *ledger.Message, doc *config.Routing, keys []selector.Key) *completion {
	return &completion{message: m, doc: doc, route: routeNamed(doc, m.Plan.Route), keys: keys}
}

// complete adds to the candidates of a choice that was made at a moment. Those that come from
// another version than the document are left as they are.
func (k *completion) complete(candidates []Candidate, b *Basis, at time.Time) {
	if k.route == nil || b.RankedVersion != k.message.Plan.Version {
		return
	}
	selectors := decide.SelectorsAt(k.message, at)
	for i := range candidates {
		if c := &candidates[i]; c.Eligible == nil {
			if reason := k.forbidden(c.Channel, selectors); reason != "" {
				c.Eligible, c.Reason = new(false), reason
			}
		}
	}
	k.closed(candidates)
	k.redraw(candidates, b)
}

// forbidden is why the channel could not have taken the message in any state; empty when the
// version does not forbid it.
func (k *completion) forbidden(channel string, selectors []selector.Selector) string {
	ch := channelNamed(k.doc, channel)
	switch {
	case ch == nil:
		return ""
	case ch.State == config.Disabled:
		return "disabled"
	case ch.State == config.Draining:
		return "draining"
	case !k.route.BypassSelectors && !ch.MeetsAll(selectors):
		return "selector"
	}
	return ""
}

// closed names the limits that never have room for the message, for candidates that were passed
// over because of a limit.
func (k *completion) closed(candidates []Candidate) {
	for i := range candidates {
		c := &candidates[i]
		ch := channelNamed(k.doc, c.Channel)
		if ch == nil || !c.cannot() {
			continue
		}
		for _, on := range []string{c.Channel, ""} {
			limits := admission.Covering(
				limitsOn(k.doc, on), k.message.Tenant, decide.Recipient(k.message),
			)
			at := slices.IndexFunc(limits, func(l admission.Limit) bool {
				return concerns(c.Reason, &l) && k.never(&l, ch) != ""
			})
			if at >= 0 {
				c.Limit, c.Never = limits[at].Key().On(on), k.never(&limits[at], ch)
				break
			}
		}
	}
}

// concerns reports whether a reason is about how much a limit has left.
func concerns(reason string, l *admission.Limit) bool {
	switch reason {
	case "no_budget":
		return l.Unit == admission.Money
	case "no_slot":
		return l.Unit != admission.Money && l.Scope == (admission.Scope{})
	case "tenant_limit":
		return l.Unit != admission.Money && l.Scope.Tenant != ""
	case "prefix_limit":
		return l.Unit != admission.Money && l.Scope.Prefix != ""
	}
	return false
}

// never is why the limit never has room for the message on a channel; empty when it may have.
func (k *completion) never(limit *admission.Limit, ch *config.Channel) string {
	segments := int64(k.message.Plan.Segments)
	switch {
	case limit.Window == admission.Prepaid:
		return ""
	case limit.Closed():
		return lackOpen
	case limit.Unit == admission.Segments && segments > limit.Max,
		limit.Unit == admission.Money && segments*k.cheapest(ch) > limit.Max:
		return lackSize
	}
	return ""
}

// cheapest is the least that a segment of the message can have cost on a channel. It is what it did
// cost where the price depends neither on the date nor on the country, which are not known here.
func (k *completion) cheapest(ch *config.Channel) int64 {
	if len(ch.Price.Lists) != 1 || len(ch.Price.Lists[0].Countries) > 0 {
		return ch.Price.Least()
	}
	list := &ch.Price.Lists[0]
	price := decide.NewPrice(ch.Price.Currency, decide.PriceList{
		Default: list.Default, Prefixes: list.Prefixes, Networks: list.Networks,
	})
	to := decide.DestinationOf(k.message, nil)
	return price.Segment(&to, k.message.ReceivedAt)
}

// redraw tells by which draw each candidate of a redraw came to its place. The candidates stand in
// drawn order, behind the first choice on a route that draws.
func (k *completion) redraw(candidates []Candidate, b *Basis) {
	if b.RankedBy != string(decide.Redraw) || k.route == nil {
		return
	}
	if b.RedrawKeyID == "" {
		b.RedrawKeyID = k.message.Plan.KeyID // of a forecast
	}
	left := intervalsLeft(k.route)
	if k.route.Mode == modeWeighted {
		left.take(k.message.Plan.FirstChoice)
	}
	at := slices.IndexFunc(k.keys, func(key selector.Key) bool { return key.ID() == b.RedrawKeyID })
	number := 2
	for i := range candidates {
		r := left.take(candidates[i].Channel)
		if r == nil {
			continue // the first choice, weight 0, or no member any more
		}
		r.Number = number
		if alone := r.High-r.Low+1 == r.Size; at >= 0 && !alone {
			drawer := selector.NewDrawer(k.keys[at])
			r.Draw = new(drawer.Draw(k.message.ID, number, r.Size))
		}
		candidates[i].Redraw = r
		number++
	}
}

// notDrawn are the intervals of the channels that have not been drawn yet.
type notDrawn []selector.Interval

func intervalsLeft(route *config.Route) notDrawn {
	table, err := selector.NewTable(route.Entries())
	if err != nil {
		return nil // a document with such weights was never applied
	}
	return slices.DeleteFunc(table.Intervals(), func(i selector.Interval) bool { return i.Empty })
}

// take takes a channel out and is its interval among those that were left; nil when it is not one
// of them.
func (n *notDrawn) take(channel string) *Redraw {
	var r *Redraw
	size, found := uint64(0), -1
	for i, iv := range *n {
		width := iv.High - iv.Low + 1
		if iv.Name == channel {
			r, found = &Redraw{Low: size, High: size + width - 1}, i
		}
		size += width
	}
	if r != nil {
		r.Size = size
		*n = slices.Delete(*n, found, found+1)
	}
	return r
}
