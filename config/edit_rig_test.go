package config_test

import (
	"dispatcher/admission"
	"dispatcher/config"
)

// edited reads a text, changes it and returns the new text.
func edited(text []byte, change func(*config.Document) (*config.Document, error)) ([]byte, error) {
	d, err := config.ParseApplied("routing", text)
	if err != nil {
		return nil, err
	}
	if d, err = change(d); err != nil {
		return nil, err
	}
	return d.Text, nil
}

func setWeights(text []byte, route string, weights []config.Weight) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document,
		error) {
		return d.SetWeights(route, weights)
	})
}

func setState(text []byte, channel string, state config.State) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document,
		error) {
		return d.SetState(channel, state)
	})
}

func setLimit(text []byte, channel string, limit admission.Limit) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document,
		error) {
		return d.SetLimit(channel, limit)
	})
}

func dropLimit(text []byte, channel string, key admission.Key) ([]byte, error) {
	return edited(text, func(d *config.Document) (*config.Document,
		error) {
		return d.DropLimit(channel, key)
	})
}
