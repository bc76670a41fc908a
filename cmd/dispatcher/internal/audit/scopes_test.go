package audit

import (
	"pgregory.net/rapid"

	"dispatcher/admission"
)

// drawnScope is a tenant or a prefix.
func drawnScope(t *rapid.T) admission.Scope {
	if rapid.Bool().Draw(t, "by tenant") {
		return admission.Scope{Tenant: rapid.SampledFrom([]string{"shop", "bank", "news"}).Draw(t, "tenant")}
	}
	return admission.Scope{Prefix: rapid.SampledFrom([]string{"+4", "+44", "+447", "+4479", "+1", "+447700900123", "+4477009001234"}).Draw(t, "prefix")}
}

// drawnLimits are limits of tenants and prefixes.
func drawnLimits(t *rapid.T) []admission.Limit {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) admission.Limit {
		return admission.Limit{
			Scope: drawnScope(t), Max: rapid.Int64Range(0, 9).Draw(t, "max"),
			Window: rapid.SampledFrom([]admission.Window{admission.Minute, admission.Day}).Draw(t, "window"),
		}
	}), 0, 8, func(l admission.Limit) admission.Key { return l.Key() }).Draw(t, "limits")
}
