package control

import (
	"context"
	"slices"

	"dispatcher/admission"
	"dispatcher/config"
)

// SetLimit changes, adds or removes one limit of a channel, or one over all channels when channel
// is empty. words may be nil; it rewrites an error of the document.
func (d *Draft) SetLimit(
	ctx context.Context, channel string, l admission.Limit, remove bool, words func(error) error,
) (*Changed, error) {
	if err := d.need(); err != nil {
		return nil, err
	}
	if channel != "" {
		if _, err := channelOf(d.Base(), channel); err != nil {
			return nil, err
		}
	}
	there := slices.ContainsFunc(LimitsOf(d.Base(), channel), func(other admission.Limit) bool {
		return other.Key() == l.Key()
	})
	if remove && !there {
		return nil, unknownf(`there is no limit %s; see "dispatcher limits show"`, l.Key().On(channel))
	}
	return d.Make(ctx, func() (doc *config.Document, err error) {
		if remove {
			doc, err = d.Document.DropLimit(channel, l.Key())
		} else {
			doc, err = d.Document.SetLimit(channel, l)
		}
		if err != nil && words != nil {
			err = words(err)
		}
		return doc, err
	})
}

// LimitsOf returns the limits of a channel, or those over all channels when channel is empty.
func LimitsOf(doc *config.Routing, channel string) []admission.Limit {
	if channel == "" {
		return doc.Limits
	}
	if c := doc.Channel(channel); c != nil {
		return c.Limits
	}
	return nil
}
