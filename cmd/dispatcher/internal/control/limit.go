package control

import (
	"context"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// SetLimit changes, adds or removes one limit of a channel, or one over all channels when channel
// is empty. words may be nil; it rewrites an error of the document.
func (d *Draft) SetLimit(
	ctx context.Context, channel string, l admission.Limit, remove bool, words func(error) error,
) (*Changed, error) {
	if err := d.needChannel(channel); err != nil {
		return nil, err
	}
	if remove {
		if _, err := d.limit(channel, l.Key()); err != nil {
			return nil, err
		}
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

// SetMax changes the max of a limit that is named in the words of admission.Key.On, such as
// "alpha 1s messages". channel is empty for a limit over all channels.
func (d *Draft) SetMax(
	ctx context.Context, on, most string,
) (done *Changed, channel string, err error) {
	channel, key, err := named(on)
	if err != nil {
		return nil, "", err
	}
	limit, err := d.limit(channel, key)
	if err != nil {
		return nil, "", err
	}
	if limit.Window == admission.Prepaid {
		return nil, "", refusef("budget %s has no max: top it up", on)
	}
	if limit.Max, err = config.ParseMax(most, limit.Unit); err != nil {
		return nil, "", refusef("max: %w", err)
	}
	done, err = d.SetLimit(ctx, channel, *limit, false, nil)
	return done, channel, err
}

// LimitNames are the limits of a channel, or those over all channels, in the words of
// admission.Key.On: those whose max can be set, and the budgets that can be topped up.
func LimitNames(doc *config.Routing, channel string) (set, prepaid []string) {
	for _, l := range doc.LimitsOf(channel) {
		switch on := l.Key().On(channel); {
		case l.Window != admission.Prepaid:
			set = append(set, on)
		case !l.Scope.Each(): // each tenant has a budget of its own
			prepaid = append(prepaid, on)
		}
	}
	return set, prepaid
}

// named parses the words of admission.Key.On.
func named(on string) (channel string, key admission.Key, err error) {
	channel, key, ok := admission.ParseOn(on)
	if !ok {
		return "", key, refusef("%s is not a limit: choose one", report.Quoted(on))
	}
	return channel, key, nil
}

// limit is a limit of the document in force.
func (d *Draft) limit(channel string, key admission.Key) (*admission.Limit, error) {
	if err := d.needChannel(channel); err != nil {
		return nil, err
	}
	limit, ok := admission.Find(d.Base().LimitsOf(channel), key)
	if !ok {
		return nil, unknownf(`there is no limit %s; see "dispatcher limits show"`, key.On(channel))
	}
	return &limit, nil
}
