package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"dispatcher/admission"
)

// SetLimit returns the document with another max for the limit that has the key of the given one.
// It is a limit of the channel, or one over all channels when no channel is named. If there is no
// such limit, the given one is added at the end. Its currency and burst may be left out, as in a
// document. A burst in the document that does not fit the new max becomes the default, so that an
// operator who lowers a limit in a hurry need not think of it. It gives the guarantees of
// SetWeights.
func (d *Document) SetLimit(channel string, limit admission.Limit) (*Document, error) {
	if limit.Window == admission.Prepaid {
		return nil, fmt.Errorf("a prepaid budget has no max to set: \"dispatcher budget top-up\" adds " +
			"to one; a new one is added to the document itself")
	}
	want := d.Routing.clone()
	limits, err := want.editedLimits(channel)
	if err != nil {
		return nil, err
	}
	at := indexOfLimit(*limits, limit.Key())
	var text []byte
	switch {
	case at < 0:
		at = len(*limits)
		*limits = append(*limits, limit)
		text, err = d.addLimit(channel, &limit)
	case limit.Currency != "" && limit.Currency != (*limits)[at].Currency:
		err = fmt.Errorf("the limit of %s is in %s, not in %s; %s", limitWords(limit.Key()),
			(*limits)[at].Currency, limit.Currency, byHand)
	case (*limits)[at].Max == limit.Max:
		return d, nil
	default:
		changed := &(*limits)[at]
		changed.Max = limit.Max
		text, err = d.setMax(channel, at, changed, want.DefaultBurst(channel, changed))
	}
	if err != nil {
		return nil, d.refuse(err)
	}
	return d.edited(text, func(got *Routing) *Routing {
		// Burst and currency may follow from the rest of the document.
		if read, _ := got.editedLimits(channel); at < len(*read) {
			(*limits)[at].Burst, (*limits)[at].Currency = (*read)[at].Burst, (*read)[at].Currency
		}
		return want
	})
}

// DropLimit returns the document without one limit of a channel, or over all channels when no
// channel is named, and without a comment after it. It gives the guarantees of SetWeights.
func (d *Document) DropLimit(channel string, key admission.Key) (*Document, error) {
	want := d.Routing.clone()
	limits, err := want.editedLimits(channel)
	if err != nil {
		return nil, err
	}
	drop := indexOfLimit(*limits, key)
	if drop < 0 {
		return nil, noLimit(*limits, channel, key)
	}
	*limits = slices.Delete(*limits, drop, drop+1)
	return d.rewrite(want, limitsPath(channel), func(mapping *yaml.Node, at int) error {
		list := mapping.Content[at+1]
		above := mapping.Content[at] // a comment above the limit may be about others, too
		if drop+1 < len(list.Content) {
			above = list.Content[drop+1]
		}
		above.HeadComment = joinComments(list.Content[drop].HeadComment, above.HeadComment)
		list.Content = slices.Delete(list.Content, drop, drop+1)
		if len(list.Content) == 0 { // without this the value would be null, which looks like a mistake
			list.Style |= yaml.FlowStyle
		}
		return nil
	})
}

// limitsPath is the path of the limits of a channel, or of those over all channels.
func limitsPath(channel string) []string {
	if channel == "" {
		return []string{"limits"}
	}
	return []string{"channels", channel, "limits"}
}

// editedLimits are the limits of a channel, or those over all channels, to be changed in place.
func (r *Routing) editedLimits(channel string) (*[]admission.Limit, error) {
	if channel == "" {
		return &r.Limits, nil
	}
	c := r.Channel(channel)
	if c == nil {
		return nil, noChannel(r, channel)
	}
	return &c.Limits, nil
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

// setMax changes the max of a limit, and its burst if it no longer fits.
func (d *Document) setMax(
	channel string, index int, limit *admission.Limit, burst int64,
) ([]byte, error) {
	return rewrite(d.Text, d.root, limitsPath(channel), func(mapping *yaml.Node, at int) error {
		item := mapping.Content[at+1].Content[index]
		if item.Kind == yaml.AliasNode || item.Anchor != "" {
			return fmt.Errorf("a limit is shared by an anchor; %s", byHand)
		}
		if at := indexOf(item, "burst"); at >= 0 && limit.Max > 0 {
			written, err := strconv.ParseInt(resolve(item.Content[at+1]).Value, 10, 64)
			if err == nil && written > limit.Max {
				if err := setScalar(item, at, number(burst)); err != nil {
					return err
				}
			}
		}
		return setScalar(item, indexOf(item, "max"), bareMax(limit))
	})
}

// addLimit adds a limit after the others. Where there are none it adds a list: after the provider
// of a channel, after the time zone of the document, or at the end of the document.
func (d *Document) addLimit(channel string, limit *admission.Limit) ([]byte, error) {
	path := limitsPath(channel)
	if hasPath(d.root, path) {
		return rewrite(d.Text, d.root, path, func(mapping *yaml.Node, at int) error {
			return appendLimit(mapping, at, limit)
		})
	}
	near := "provider"
	if channel == "" {
		near = "timezone"
		if !hasPath(d.root, []string{near}) {
			if d.root.Style&yaml.FlowStyle == 0 {
				return d.appendEntry("limits", func(style yaml.Style) *yaml.Node {
					return limitList(limit, style)
				})
			}
			near = d.root.Content[0].Value
		}
	}
	path[len(path)-1] = near
	return rewrite(d.Text, d.root, path, func(mapping *yaml.Node, at int) error {
		insert(mapping, at, "limits", limitList(limit, mapping.Content[at].Style))
		return nil
	})
}

// appendLimit adds a limit to the list under a key, in the style of the last one.
func appendLimit(mapping *yaml.Node, at int, limit *admission.Limit) error {
	key, list := mapping.Content[at], mapping.Content[at+1]
	if len(list.Content) == 0 {
		added := limitList(limit, key.Style)
		list.Kind, list.Tag, list.Value, list.Style, list.Content = added.Kind, "", "", added.Style,
			added.Content
		return nil
	}
	last := resolve(list.Content[len(list.Content)-1])
	item := limitNode(limit, last.Content[0].Style)
	item.Style = last.Style & yaml.FlowStyle
	list.Content = append(list.Content, item)
	return nil
}

// appendEntry adds an entry at the end of a document in block style, which must not have the key
// yet. value gets the style of the keys.
func (d *Document) appendEntry(
	name string, value func(yaml.Style) *yaml.Node,
) ([]byte, error) {
	style := d.root.Content[0].Style
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: name, Style: style & quotes}
	written, err := encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		key,
		value(style),
	}}, 2, false)
	if err != nil {
		return nil, err
	}
	lines := splitLines(string(d.Text))
	br := lineBreak(lines[0])
	if lines[len(lines)-1] != "" {
		lines = append(lines, br)
	}
	return []byte(strings.Join(lines, "") + strings.TrimSuffix(written, "\n") + br), nil
}

// limitList is a list of one limit.
func limitList(l *admission.Limit, style yaml.Style) *yaml.Node {
	return &yaml.Node{
		Kind: yaml.SequenceNode, Style: yaml.FlowStyle,
		Content: []*yaml.Node{limitNode(l, style)},
	}
}

// limitNode is a limit as the document writes it. Texts are in double quotes where keys are, as in
// JSON, and where they would otherwise mean something else.
func limitNode(l *admission.Limit, style yaml.Style) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	add := func(to *yaml.Node, key string, value *yaml.Node) {
		to.Content = append(to.Content, &yaml.Node{
			Kind: yaml.ScalarNode, Tag: "!!str", Value: key,
			Style: style & quotes,
		}, value)
	}
	text := func(s string) *yaml.Node {
		return &yaml.Node{
			Kind: yaml.ScalarNode, Tag: "!!str", Value: s,
			Style: style & yaml.DoubleQuotedStyle,
		}
	}
	bare := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
	add(out, "window", text(l.Window.String()))
	add(out, "max", bare(bareMax(l)))
	if l.Unit != admission.Messages {
		add(out, "unit", text(l.Unit.String()))
	}
	if l.Currency != "" {
		add(out, "currency", text(l.Currency))
	}
	if l.Sliding {
		add(out, "sliding", bare("true"))
	}
	if l.Burst != 0 {
		add(out, "burst", bare(number(l.Burst)))
	}
	if len(l.Reserve) > 0 {
		reserve := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		for _, r := range l.Reserve {
			add(reserve, r.Lane, text(number(r.Percent)+"%"))
		}
		add(out, "reserve", reserve)
	}
	if l.Scope.Tenant != "" {
		add(out, "tenant", text(l.Scope.Tenant))
	}
	if l.Scope.Prefix != "" {
		add(out, "prefix", text(l.Scope.Prefix))
	}
	return out
}

// bareMax is the max of a limit without its currency; for money with at least two decimals.
func bareMax(l *admission.Limit) string {
	if l.Unit != admission.Money {
		return number(l.Max)
	}
	return amount(l.Max)
}
