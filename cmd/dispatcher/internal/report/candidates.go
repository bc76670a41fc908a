package report

import (
	"cmp"
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

// candidatesOf converts the candidates of a stored ranking; nil when there is none.
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
			Limit: from.Limit.On(from.Channel), Eligible: new(from.Reason == ""),
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

// passedOver returns the candidates before the chosen one; all of them when none was chosen.
func passedOver(all []Candidate) []Candidate {
	if at := slices.IndexFunc(all, func(c Candidate) bool { return c.can() }); at >= 0 {
		return all[:at]
	}
	return all
}

// completion adds to stored candidates what can be derived from the message, the routing version
// and the draw keys.
type completion struct {
	message *ledger.Message
	doc     *config.Routing
	route   *config.Route // nil when the version is unknown or does not have the route
	keys    []selector.Key
}

func newCompletion(m *ledger.Message, doc *config.Routing, keys []selector.Key) *completion {
	return &completion{message: m, doc: doc, route: doc.Route(m.Plan.Route), keys: keys}
}

// complete completes the candidates of a choice made at a time. It leaves them unchanged if they
// come from another version than the document.
func (co *completion) complete(candidates []Candidate, b *Basis, at time.Time) {
	if co.route == nil || b.RankedVersion != co.message.Plan.Version {
		return
	}
	selectors := decide.SelectorsAt(co.message, at)
	for i := range candidates {
		if c := &candidates[i]; c.Eligible == nil {
			if reason := co.forbidden(c.Channel, selectors); reason != "" {
				c.Eligible, c.Reason = new(false), reason
			}
		}
	}
	co.closed(candidates)
	co.redraw(candidates, b)
}

// forbidden is why the routing version alone excludes the channel for the message; empty when it
// does not.
func (co *completion) forbidden(channel string, selectors []selector.Selector) string {
	ch := co.doc.Channel(channel)
	switch {
	case ch == nil:
		return ""
	case ch.State == config.Disabled:
		return "disabled"
	case ch.State == config.Draining:
		return "draining"
	case !co.route.BypassSelectors && !ch.MeetsAll(selectors):
		return "selector"
	}
	return ""
}

// closed sets Never, and Limit if it was not recorded, of the candidates that were excluded by a
// limit which can never admit the message.
func (co *completion) closed(candidates []Candidate) {
	for i := range candidates {
		c := &candidates[i]
		ch := co.doc.Channel(c.Channel)
		if ch == nil || !c.cannot() {
			continue
		}
		for _, on := range []string{c.Channel, ""} {
			limits := admission.Covering(
				co.doc.LimitsOf(on), co.message.Tenant, decide.Recipient(co.message),
			)
			at := slices.IndexFunc(limits, func(l admission.Limit) bool {
				name := decide.NameLimit(&l, on == "")
				return concerns(c.Reason, &l) && co.never(&l, ch) != "" &&
					(c.Limit == "" || c.Limit == name.On(on))
			})
			if at >= 0 {
				c.Limit = cmp.Or(c.Limit, limits[at].Key().On(on))
				c.Never = co.never(&limits[at], ch)
				break
			}
		}
	}
}

// concerns reports whether an exclusion reason is about what this limit has left.
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

// never is why the limit can never admit the message on a channel; empty when it can.
func (co *completion) never(limit *admission.Limit, ch *config.Channel) string {
	segments := int64(co.message.Plan.Segments)
	switch {
	case limit.Window == admission.Prepaid:
		return ""
	case limit.Closed():
		return lackClosed
	case limit.Unit == admission.Segments && segments > limit.Max,
		limit.Unit == admission.Money && segments*co.cheapest(ch) > limit.Max:
		return lackTooSmall
	}
	return ""
}

// cheapest is the least that a segment of the message can cost on a channel. It is exact if the
// price depends neither on date nor on country, which are not known here.
func (co *completion) cheapest(ch *config.Channel) int64 {
	if len(ch.Price.Lists) != 1 || len(ch.Price.Lists[0].Countries) > 0 {
		return ch.Price.Least()
	}
	list := &ch.Price.Lists[0]
	price := decide.NewPrice(ch.Price.Currency, decide.PriceList{
		Default: list.Default, Prefixes: list.Prefixes, Networks: list.Networks,
	})
	to := decide.DestinationOf(co.message, nil)
	return price.Segment(&to, co.message.ReceivedAt)
}

// redraw sets Redraw of the candidates of a redraw. They are in the order drawn; on a route that
// draws, the first choice comes before them.
func (co *completion) redraw(candidates []Candidate, b *Basis) {
	if b.RankedBy != string(decide.Redraw) || co.route == nil {
		return
	}
	if b.RedrawKeyID == "" {
		b.RedrawKeyID = co.message.Plan.KeyID // for a forecast
	}
	left := intervalsLeft(co.route)
	if co.route.Draws() {
		left.take(co.message.Plan.FirstChoice)
	}
	at := slices.IndexFunc(co.keys, func(key selector.Key) bool { return key.ID() == b.RedrawKeyID })
	number := 2
	for i := range candidates {
		r := left.take(candidates[i].Channel)
		if r == nil {
			continue // the first choice, a channel of weight 0, or one that left the route
		}
		r.Number = number
		if alone := r.High-r.Low+1 == r.Size; at >= 0 && !alone {
			drawer := selector.NewDrawer(co.keys[at])
			r.Draw = new(drawer.Draw(co.message.ID, number, r.Size))
		}
		candidates[i].Redraw = r
		number++
	}
}

// notDrawn are the intervals of the channels that are not drawn yet.
type notDrawn []selector.Interval

func intervalsLeft(route *config.Route) notDrawn {
	table, err := selector.NewTable(route.Entries())
	if err != nil {
		return nil // not expected: such a document cannot be applied
	}
	return slices.DeleteFunc(table.Intervals(), func(i selector.Interval) bool { return i.Empty })
}

// take removes a channel and returns its interval among those left; nil when it is not left.
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
