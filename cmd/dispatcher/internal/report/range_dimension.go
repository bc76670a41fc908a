package report

import (
	"fmt"
	"slices"
	"strings"

	"dispatcher/ledger"
)

// Dimension is what the rows of a range are grouped by.
type Dimension string

// Dimensions of a range.
const (
	ByHour     Dimension = "hour"
	ByRoute    Dimension = "route"
	ByChannel  Dimension = "channel"
	ByTenant   Dimension = "tenant"
	ByCountry  Dimension = "country"
	BySender   Dimension = "sender"
	ByCurrency Dimension = "currency"
	ByReason   Dimension = "reason"
)

// Dimensions lists all dimensions.
var Dimensions = []Dimension{
	ByHour, ByRoute, ByChannel, ByTenant, ByCountry, BySender, ByCurrency, ByReason,
}

// ParseDimensions parses names of dimensions. No name stands for route and channel.
func ParseDimensions(names []string) ([]Dimension, error) {
	if len(names) == 0 {
		return []Dimension{ByRoute, ByChannel}, nil
	}
	var out []Dimension
	for _, name := range names {
		d := Dimension(strings.TrimSpace(name))
		switch {
		case !slices.Contains(Dimensions, d):
			return nil, fmt.Errorf("%q is not a dimension: there are %s", name, dimensionNames())
		case slices.Contains(out, d):
			return nil, fmt.Errorf("%s is named twice", d)
		}
		out = append(out, d)
	}
	return out, nil
}

func dimensionNames() string {
	names := make([]string, len(Dimensions))
	for i, d := range Dimensions {
		names[i] = string(d)
	}
	return enumerate(names)
}

// SplitOf is what the ledger must group by for some dimensions.
func SplitOf(by []Dimension) ledger.Split {
	return ledger.Split{
		Hour: slices.Contains(by, ByHour), Tenant: slices.Contains(by, ByTenant),
		CallingCode: slices.Contains(by, ByCountry), Sender: slices.Contains(by, BySender),
		Reason: slices.Contains(by, ByReason),
	}
}
