package control

import (
	"context"
	"slices"
	"strings"

	"dispatcher/config"
)

// Pause adds to what is paused.
func (d *Draft) Pause(ctx context.Context, more *config.Paused) (*Changed, error) {
	return d.setPaused(ctx, more, func(now *config.Paused) {
		now.All = now.All || more.All
		for _, list := range pausedLists(now, more) {
			for _, name := range *list[1] {
				if !slices.Contains(*list[0], name) {
					*list[0] = append(*list[0], name)
				}
			}
		}
	})
}

// Resume ends the pauses that are named, or every pause with All.
func (d *Draft) Resume(ctx context.Context, less *config.Paused) (*Changed, error) {
	return d.setPaused(ctx, less, func(now *config.Paused) {
		if less.All {
			*now = config.Paused{}
		}
		for _, list := range pausedLists(now, less) {
			*list[0] = slices.DeleteFunc(*list[0], func(name string) bool {
				return slices.Contains(*list[1], name)
			})
		}
	})
}

// pausedLists pairs the lists of a with those of b.
func pausedLists(a, b *config.Paused) [][2]*[]string {
	return [][2]*[]string{
		{&a.Lanes, &b.Lanes},
		{&a.Routes, &b.Routes},
		{&a.Tenants, &b.Tenants},
		{&a.Prefixes, &b.Prefixes},
	}
}

// setPaused checks the given names, and applies a change of what is paused.
func (d *Draft) setPaused(
	ctx context.Context, by *config.Paused, apply func(now *config.Paused),
) (*Changed, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	if err := pausable(d.Document.Routing, by); err != nil {
		return nil, err
	}
	return d.Make(ctx, func() (*config.Document, error) {
		now := d.Document.Routing.Paused
		now.Lanes, now.Routes, now.Tenants = slices.Clone(now.Lanes), slices.Clone(now.Routes),
			slices.Clone(now.Tenants)
		now.Prefixes = slices.Clone(now.Prefixes)
		apply(&now)
		return d.Document.SetPaused(now)
	})
}

// pausable refuses lanes and routes that the document does not have, and prefixes that no number
// begins with. Tenants need not be in the document.
func pausable(doc *config.Routing, p *config.Paused) error {
	for _, prefix := range p.Prefixes {
		if err := checkPrefix(prefix); err != nil {
			return err
		}
	}
	return knownNames(
		names{"lane", p.Lanes, doc.LaneNames()}, names{"route", p.Routes, doc.RouteNames()},
	)
}

// names are the given names of one kind, and those that the document has.
type names struct {
	kind         string
	given, known []string
}

// given is a list with one name; an empty list for an empty name.
func given(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// knownNames refuses names that the document does not have.
func knownNames(lists ...names) error {
	for _, list := range lists {
		for _, name := range list.given {
			if !slices.Contains(list.known, name) {
				return unknownf("there is no %s %q; choose one of %s", list.kind, name,
					strings.Join(list.known, ", "))
			}
		}
	}
	return nil
}
