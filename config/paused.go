package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Paused says what is not sent for now. Paused messages wait until an operator resumes them, or
// until their deadline. The zero value pauses nothing.
type Paused struct {
	All                    bool
	Lanes, Routes, Tenants []string
	Prefixes               []string // beginnings of numbers, plus included
}

// Any reports whether anything is paused.
func (p *Paused) Any() bool {
	return p.All || len(p.Lanes)+len(p.Routes)+len(p.Tenants)+len(p.Prefixes) > 0
}

// Lane reports whether a whole lane is paused.
func (p *Paused) Lane(name string) bool { return p.All || slices.Contains(p.Lanes, name) }

// Route reports whether a whole route is paused.
func (p *Paused) Route(name string) bool { return p.All || slices.Contains(p.Routes, name) }

// Holds reports whether a message with this lane, tenant, route and number is paused.
func (p *Paused) Holds(lane, tenant, route, number string) bool {
	return p.Lane(lane) || p.Route(route) || slices.Contains(p.Tenants, tenant) ||
		p.holdsNumber(number)
}

func (p *Paused) holdsNumber(number string) bool {
	for _, prefix := range p.Prefixes {
		if strings.HasPrefix(number, prefix) {
			return true
		}
	}
	return false
}

// Words are what is paused, as the flags of commands write it.
func (p *Paused) Words() []string {
	var out []string
	if p.All {
		out = append(out, "all")
	}
	for _, list := range []struct {
		kind  string
		names []string
	}{{"lane", p.Lanes}, {"route", p.Routes}, {"tenant", p.Tenants}, {"prefix", p.Prefixes}} {
		for _, name := range list.names {
			out = append(out, list.kind+" "+plain(name))
		}
	}
	return out
}

func readPaused(v value, r *Routing) Paused {
	f, ok := v.fields(pausedPart)
	if !ok {
		return Paused{}
	}
	p := Paused{
		Lanes:    readWords(f, "lanes", "lane", oneOf("lane", r.LaneNames(), "remove it")),
		Routes:   readWords(f, "routes", "route", oneOf("route", r.RouteNames(), "remove it")),
		Tenants:  readWords(f, "tenants", "tenant", nil),
		Prefixes: readWords(f, "prefixes", "prefix", checkPrefix),
	}
	if all, ok := f.get("all"); ok {
		p.All = all.flag()
	}
	return p
}

func pathsOfPaused(l paths, p *Paused) {
	if p.All {
		l.below("all").set("true")
	}
	l.below("lanes").setWords(p.Lanes)
	l.below("routes").setWords(p.Routes)
	l.below("tenants").setWords(p.Tenants)
	l.below("prefixes").setWords(p.Prefixes)
}

// SetPaused returns the document with another list of what is paused. It gives the guarantees of
// SetWeights.
func (d *Document) SetPaused(p Paused) (*Document, error) {
	for _, list := range [][]string{p.Lanes, p.Routes, p.Tenants, p.Prefixes} {
		slices.Sort(list)
	}
	want := d.Routing.clone()
	want.Paused = p
	if len(Diff(d.Routing, want)) == 0 {
		return d, nil
	}
	const name = "paused"
	if hasPath(d.root, []string{name}) {
		return d.rewrite(want, []string{name}, func(mapping *yaml.Node, at int) error {
			mapping.Content[at+1] = pausedNode(&p, mapping.Content[at].Style)
			return nil
		})
	}
	near := "timezone"
	if !hasPath(d.root, []string{near}) {
		near = d.root.Content[0].Value
		if d.root.Style&yaml.FlowStyle == 0 {
			text, err := d.appendEntry(name, func(style yaml.Style) *yaml.Node {
				return pausedNode(&p, style)
			})
			if err != nil {
				return nil, d.refuse(err)
			}
			return d.edited(text, func(*Routing) *Routing { return want })
		}
	}
	return d.rewrite(want, []string{near}, func(mapping *yaml.Node, at int) error {
		insert(mapping, at, name, pausedNode(&p, mapping.Content[at].Style))
		return nil
	})
}

// pausedNode writes what is paused in the style of the neighbouring keys.
func pausedNode(p *Paused, style yaml.Style) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	add := func(key string, value *yaml.Node) {
		out.Content = append(out.Content, &yaml.Node{
			Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Style: style & quotes,
		}, value)
	}
	if p.All {
		add("all", &yaml.Node{Kind: yaml.ScalarNode, Value: "true"})
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"lanes", p.Lanes}, {"routes", p.Routes}, {"tenants", p.Tenants}, {"prefixes", p.Prefixes}} {
		if len(list.names) == 0 {
			continue
		}
		names := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, name := range list.names {
			names.Content = append(names.Content, &yaml.Node{
				Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Style: style & yaml.DoubleQuotedStyle,
			})
		}
		add(list.key, names)
	}
	return out
}
