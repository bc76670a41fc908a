package config

import (
	"slices"
	"time"
)

// The words that the routing document chooses from. A word that a later version brings
// is added here, beside the code that acts on it, and nowhere else.
var (
	// providers: those with an HTTP API have their opener in internal/app.
	providers  = []string{"smpp", "sandbox", "aws", "bird", "httpapi", "infobip", "plivo", "sinch", "telnyx", "twilio", "vonage"}
	modes      = []Mode{Weighted, RoundRobinMode, LongestIdle, BestWorkerMode}
	fallbacks  = []Ranker{LoadRatio, BestWorker, RoundRobin, Redraw}
	untils     = []string{untilSubmit, untilReceipt}
	policies   = []string{"even", "curve", "counter", exactPolicy}
	states     = []State{Enabled, Draining, Disabled}
	throttleds = []string{"next", holdThrottled}
	ambiguous  = []string{"never", "resend_once"}
	clarifies  = []string{"same_key", "lookup", "receipt"}
)

// Words of a channel's limits.
const (
	untilSubmit  = "submit"
	untilReceipt = "receipt"
	exactPolicy  = "exact"

	holdThrottled = "wait"
)

// Providers are the words that a channel's provider is chosen from.
func Providers() []string { return slices.Clone(providers) }

// Defaults of the routing document.
const (
	defaultCapacity    = 100
	defaultMaxSegments = 10
	defaultMaxWaiting  = 10_000
	defaultHold        = 10 * time.Minute // of a slot that is kept until the receipt
	defaultCurveFactor = 1
)
