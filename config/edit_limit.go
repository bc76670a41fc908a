package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
)

// SetLimit returns the document with another max for one limit and every other byte as it was. The
// limit is that of a channel, or over all channels when no channel is named, with the key of the
// one given. If there is none, it is added behind the others as it is given. The currency and the
// burst may be left out, as in a document. A burst that is written there and does not fit under the
// new max becomes the default, because whoever lowers a limit in a hurry need not think of it. It gives the
// guarantees of SetWeights.
func SetLimit(document []byte, channel string, limit admission.Limit) ([]byte, error) {
	want, root, err := readForEdit(document)
	if err != nil {
		return nil, err
	}
	limits, err := want.limitsOf(channel)
	if err != nil {
		return nil, err
	}
	at := indexOfLimit(*limits, limit.Key())
	e := newEditor(document)
	switch {
	case at < 0:
		at = len(*limits)
		*limits = append(*limits, limit)
		err = e.addLimit(root, channel, &limit)
	case limit.Currency != "" && limit.Currency != (*limits)[at].Currency:
		err = fmt.Errorf("the limit of %s is in %s, not in %s; %s", limitWords(limit.Key()), (*limits)[at].Currency, limit.Currency, byHand)
	case (*limits)[at].Max != limit.Max:
		changed := &(*limits)[at]
		changed.Max = limit.Max
		err = e.setMax(root, channel, at, changed, want.DefaultBurst(channel, changed))
	}
	if err != nil {
		return nil, err
	}
	return e.finishLimit(want, channel, at)
}

// DropLimit returns the document without one limit of a channel, or over all channels when no
// channel is named, and every other byte as it was, but for a comment behind the limit. It gives the
// guarantees of SetWeights.
func DropLimit(document []byte, channel string, key admission.Key) ([]byte, error) {
	want, root, err := readForEdit(document)
	if err != nil {
		return nil, err
	}
	limits, err := want.limitsOf(channel)
	if err != nil {
		return nil, err
	}
	at := indexOfLimit(*limits, key)
	if at < 0 {
		return nil, noLimit(*limits, channel, key)
	}
	e := newEditor(document)
	holder, list, err := e.limits(root, channel)
	if err != nil {
		return nil, err
	}
	if err := e.removeItem(holder.Content[keyOf(holder, "limits")], list, at); err != nil {
		return nil, err
	}
	*limits = slices.Delete(*limits, at, at+1)
	return e.finish(want)
}

// limitsOf are the limits of a channel, or those over all channels.
func (r *Routing) limitsOf(channel string) (*[]admission.Limit, error) {
	if channel == "" {
		return &r.Limits, nil
	}
	at := slices.IndexFunc(r.Channels, func(c Channel) bool { return c.Name == channel })
	if at < 0 {
		return nil, noChannel(r, channel)
	}
	return &r.Channels[at].Limits, nil
}

func indexOfLimit(limits []admission.Limit, key admission.Key) int {
	return slices.IndexFunc(limits, func(l admission.Limit) bool { return l.Key() == key })
}

func noLimit(limits []admission.Limit, channel string, key admission.Key) error {
	place, has := "over all channels", "there is none"
	if channel != "" {
		place = "on channel " + channel
	}
	if len(limits) > 0 {
		words := make([]string, len(limits))
		for i := range limits {
			words[i] = limitWords(limits[i].Key())
		}
		has = "there are " + strings.Join(words, "; ")
	}
	return fmt.Errorf("there is no limit of %s %s; %s", limitWords(key), place, has)
}

// limits finds the mapping that holds a list of limits, and the list; nil when there is none.
func (e *editor) limits(root *yaml.Node, channel string) (holder, list *yaml.Node, err error) {
	holder = root
	if channel != "" {
		if holder, err = e.step(root, "channels"); err != nil {
			return nil, nil, err
		}
		if holder, err = e.step(holder, channel); err != nil {
			return nil, nil, err
		}
	}
	if keyOf(holder, "limits") < 0 {
		return holder, nil, nil
	}
	list, err = e.step(holder, "limits")
	return holder, list, err
}

func (e *editor) setMax(root *yaml.Node, channel string, at int, limit *admission.Limit, burst int64) error {
	_, list, err := e.limits(root, channel)
	if err != nil {
		return err
	}
	item, err := e.own(list.Content[at], "a limit")
	if err != nil {
		return err
	}
	if at := keyOf(item, "burst"); at >= 0 && limit.Max > 0 {
		written, err := strconv.ParseInt(resolve(item.Content[at+1]).Value, 10, 64)
		if err == nil && written > limit.Max {
			if err := e.replace(item, at, number(burst)); err != nil {
				return err
			}
		}
	}
	return e.replace(item, keyOf(item, "max"), bareMax(limit))
}

// addLimit adds a limit behind the others, or a list with it where there is none.
func (e *editor) addLimit(root *yaml.Node, channel string, limit *admission.Limit) error {
	holder, list, err := e.limits(root, channel)
	switch {
	case err != nil:
		return err
	case list != nil && list.Kind == yaml.SequenceNode && len(list.Content) > 0:
		return e.appendItem(list, limitPairs(limit, styleOf(list)))
	case list != nil:
		at := keyOf(holder, "limits")
		return e.fillList(holder.Content[at], list, flowMapping(limitPairs(limit, holder.Content[at].Style), holder.Content[at].Style))
	}
	// A channel has a provider, which is a word; the document may have a time zone.
	near := keyOf(holder, "provider")
	if channel == "" {
		near = keyOf(holder, "timezone")
	}
	style := holder.Content[max(near, 0)].Style
	text := "[" + flowMapping(limitPairs(limit, style), style) + "]"
	if near < 0 {
		return e.addKey(holder, "limits", text)
	}
	return e.insert(holder, near, []pair{{key: "limits", value: text, raw: true}})
}

// styleOf is how the last mapping of a list writes its keys.
func styleOf(list *yaml.Node) yaml.Style {
	if last := list.Content[len(list.Content)-1]; len(last.Content) > 0 {
		return last.Content[0].Style
	}
	return 0
}

// limitPairs are the entries of a limit, with values in the quotes of a style: JSON has
// double quotes around every text.
func limitPairs(l *admission.Limit, style yaml.Style) []pair {
	text := func(s string) string {
		if style&yaml.DoubleQuotedStyle != 0 || !plainText.MatchString(s) || plain(s) != s {
			return inQuotes(s)
		}
		return s
	}
	pairs := []pair{{key: "window", value: text(l.Window.String())}, {key: "max", value: bareMax(l)}}
	add := func(key, value string) { pairs = append(pairs, pair{key: key, value: value}) }
	if l.Unit != admission.Messages {
		add("unit", text(l.Unit.String()))
	}
	if l.Currency != "" {
		add("currency", text(l.Currency))
	}
	if l.Sliding {
		add("sliding", "true")
	}
	if l.Burst != 0 {
		add("burst", number(l.Burst))
	}
	if len(l.Reserve) > 0 {
		lanes := make([]pair, len(l.Reserve))
		for i, r := range l.Reserve {
			lanes[i] = pair{key: r.Lane, value: text(number(r.Percent) + "%")}
		}
		add("reserve", flowMapping(lanes, style))
	}
	if l.Scope.Tenant != "" {
		add("tenant", text(l.Scope.Tenant))
	}
	if l.Scope.Prefix != "" {
		add("prefix", inQuotes(l.Scope.Prefix))
	}
	return pairs
}

// plainText is what needs no quotes in any place, unless it is a word with another meaning.
var plainText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_%-]*$`)

// inQuotes writes a text as JSON does, which YAML reads too.
func inQuotes(s string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("config: " + err.Error()) // a text can always be written
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// bareMax is the max of a limit without its currency; for money with two decimals at least.
func bareMax(l *admission.Limit) string {
	if l.Unit != admission.Money {
		return number(l.Max)
	}
	return amount(l.Max)
}

// finishLimit is finish for a limit whose burst and currency may depend on the rest of the document.
func (e *editor) finishLimit(want *Routing, channel string, at int) ([]byte, error) {
	got, err := ParseApplied(edited, e.apply())
	if err != nil {
		return nil, err
	}
	read, _ := got.limitsOf(channel) // the channel was there before the edit
	limits, _ := want.limitsOf(channel)
	if at < len(*read) {
		(*limits)[at].Burst, (*limits)[at].Currency = (*read)[at].Burst, (*read)[at].Currency
	}
	return e.finish(want)
}
