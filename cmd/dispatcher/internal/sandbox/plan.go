package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Plan is which carriers are played.
type Plan struct{ Carriers []Carrier }

// Carrier is one of them.
type Carrier struct {
	// Name is that of its channel in the routing document.
	Name string
	// Provider is the channel's word for its kind; see Providers.
	Provider string
	// Address is where it listens, host:port; empty is a free port of loopback.
	Address string
	// Weight is its part of the route; empty is 1.
	Weight  string
	Profile Profile
}

// Each is a plan with one carrier of each of the given kinds, all with one profile.
func Each(providers []string, profile Profile) Plan {
	var p Plan
	for _, word := range providers {
		p.Carriers = append(p.Carriers, Carrier{Name: word, Provider: word, Profile: profile})
	}
	return p
}

// file is a plan as YAML has it.
type file struct {
	Profile  yaml.Node `yaml:"profile"`
	Carriers []entry   `yaml:"carriers"`
}

type entry struct {
	Name     string    `yaml:"name"`
	Provider string    `yaml:"provider"`
	Address  string    `yaml:"address"`
	Weight   string    `yaml:"weight"`
	Profile  yaml.Node `yaml:"profile"`
}

// profileFile is a profile as YAML has it.
type profileFile struct {
	Latency      duration `yaml:"latency"`
	Jitter       duration `yaml:"jitter"`
	Rate         int      `yaml:"rate"`
	Reject       float64  `yaml:"reject"`
	Refuse       float64  `yaml:"refuse"`
	Throttle     float64  `yaml:"throttle"`
	Lose         float64  `yaml:"lose"`
	Cut          float64  `yaml:"cut"`
	Receipts     float64  `yaml:"receipts"`
	ReceiptDelay duration `yaml:"receipt_delay"`
	Delivered    float64  `yaml:"delivered"`
	Early        float64  `yaml:"early"`
	Duplicates   float64  `yaml:"duplicates"`
}

type duration time.Duration

// UnmarshalYAML reads a duration such as 20ms.
func (d *duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is no duration such as 20ms", node.Line, node.Value)
	}
	*d = duration(parsed)
	return nil
}

// ParsePlan reads a plan. What a carrier's profile does not say is as in the profile of the whole, and what that does not say
// as in usual. All faults are reported together.
func ParsePlan(text []byte, usual Profile) (Plan, error) {
	var f file
	if err := strictly(text, &f); err != nil {
		return Plan{}, err
	}
	shared, err := over(usual, &f.Profile)
	if err != nil {
		return Plan{}, fmt.Errorf("profile: %w", err)
	}
	var plan Plan
	var faults []error
	for _, e := range f.Carriers {
		profile, err := over(shared, &e.Profile)
		if err != nil {
			faults = append(faults, fmt.Errorf("carrier %s: %w", e.Name, err))
		}
		c := Carrier{Name: e.Name, Provider: e.Provider, Address: e.Address, Weight: e.Weight, Profile: profile}
		if c.Name == "" {
			c.Name = c.Provider
		}
		plan.Carriers = append(plan.Carriers, c)
	}
	return plan, errors.Join(append(faults, plan.Validate())...)
}

// over reads a profile over another one.
func over(base Profile, node *yaml.Node) (Profile, error) {
	if node.IsZero() {
		return base, nil
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return base, err
	}
	f := profileFile{
		duration(base.Latency), duration(base.Jitter), base.Rate, base.Reject, base.Refuse, base.Throttle, base.Lose, base.Cut,
		base.Receipts, duration(base.ReceiptDelay), base.Delivered, base.Early, base.Duplicates,
	}
	if err := strictly(text, &f); err != nil {
		return base, err
	}
	return Profile{
		time.Duration(f.Latency), time.Duration(f.Jitter), f.Rate, f.Reject, f.Refuse, f.Throttle, f.Lose, f.Cut,
		f.Receipts, time.Duration(f.ReceiptDelay), f.Delivered, f.Early, f.Duplicates,
	}, nil
}

// strictly refuses keys that are not known. An empty text leaves the value as it is.
func strictly(text []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Validate reports everything that makes no sense.
func (p *Plan) Validate() error {
	if len(p.Carriers) == 0 {
		return errors.New("carriers: there is none; write for example - {provider: smpp}")
	}
	var faults []error
	seen := map[string]bool{}
	for _, c := range p.Carriers {
		switch {
		case !slices.Contains(Providers(), c.Provider):
			faults = append(faults, fmt.Errorf("carrier %s: provider %q is none of %s", c.Name, c.Provider, strings.Join(Providers(), ", ")))
		case seen[c.Name]:
			faults = append(faults, fmt.Errorf("carrier %s: the name is used twice", c.Name))
		}
		seen[c.Name] = true
		if err := c.Profile.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("carrier %s: %w", c.Name, err))
		}
	}
	return errors.Join(faults...)
}
