package control

import (
	"context"
	"slices"

	"dispatcher/config"
)

// Pause stops what is named, besides what is paused already.
func (d *Draft) Pause(ctx context.Context, more *config.Paused) (*Changed, error) {
	return d.setPaused(ctx, func(now *config.Paused) {
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

// Resume ends the pauses that are named; with All every pause.
func (d *Draft) Resume(ctx context.Context, less *config.Paused) (*Changed, error) {
	return d.setPaused(ctx, func(now *config.Paused) {
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

// pausedLists are the lists of both, side by side.
func pausedLists(a, b *config.Paused) [][2]*[]string {
	return [][2]*[]string{
		{&a.Lanes, &b.Lanes}, {&a.Routes, &b.Routes}, {&a.Tenants, &b.Tenants},
	}
}

// setPaused changes what is paused.
func (d *Draft) setPaused(
	ctx context.Context, apply func(now *config.Paused),
) (*Changed, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	return d.Make(ctx, func() (*config.Document, error) {
		now := d.Document.Routing.Paused
		now.Lanes, now.Routes, now.Tenants = slices.Clone(now.Lanes), slices.Clone(now.Routes),
			slices.Clone(now.Tenants)
		apply(&now)
		return d.Document.SetPaused(now)
	})
}
