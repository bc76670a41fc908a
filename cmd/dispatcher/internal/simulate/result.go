package simulate

// Outcome is the result of one policy in a scenario.
type Outcome struct {
	Policy        string `json:"policy"`
	Free          int64  `json:"free"`           // of the limit, at the beginning
	RegionSlots   int64  `json:"region_slots"`   // of Free, for the region
	AnywhereSlots int64  `json:"anywhere_slots"` // of Free, for any region
	PerWorker     int64  `json:"per_worker"`     // what one process of the region may admit
	Traffic
}

// Traffic counts over all windows.
type Traffic struct {
	Arrived  int64 `json:"arrived"`
	Admitted int64 `json:"admitted"`
	Queued   int64 `json:"queued"`
	// Early were queued although a slot of their window stayed free to its end: a policy that hands
	// out all slots would have admitted exactly these in addition.
	Early int64 `json:"early"`
	// Overtaken were queued although the limit had slots for them in the order of arrival, and a later
	// message got the slot. They wait instead of it, but no slot is lost.
	Overtaken int64 `json:"overtaken"`
	Over      int64 `json:"over"`   // admitted beyond the limit
	Unused    int64 `json:"unused"` // left at the end of windows, needed or not
	// Stranded are the unused slots that queued messages could have had: one for each early message.
	Stranded int64 `json:"stranded"`

	EarlyPercent     float64 `json:"early_percent"`     // of what arrived
	OvertakenPercent float64 `json:"overtaken_percent"` // of what arrived
	OverPercent      float64 `json:"over_percent"`      // of the limit
	UnusedPercent    float64 `json:"unused_percent"`    // of what was free
	StrandedPercent  float64 `json:"stranded_percent"`  // of what was free

	CallsPerMessage float64 `json:"calls_per_message"` // synchronous ones to a counter
	// average and 95th percentile of the time that the calls of a decision take
	LatencyMs    float64 `json:"latency_ms"`
	LatencyP95Ms float64 `json:"latency_p95_ms"`
	// DecisionNs is the CPU time of a decision on this machine, without calls; the caller that
	// measured it fills it in.
	DecisionNs float64  `json:"decision_ns"`
	Windows    []Window `json:"windows"`
}

// Window counts one window.
type Window struct {
	Window    int   `json:"window"` // from 1
	Arrived   int64 `json:"arrived"`
	Admitted  int64 `json:"admitted"`
	Early     int64 `json:"early"`
	Overtaken int64 `json:"overtaken"`
	Over      int64 `json:"over"`
	Unused    int64 `json:"unused"`
}

// close works out what is left at the end of a window with that many free slots. Of the messages
// that arrived first, as many as there were slots, wronged were queued. Of these, as many are early
// as slots stayed unused; the slots of the others went to later messages. So no window has more
// early messages than unused slots: when a thousand are queued and four slots stay free, four of
// them were queued in vain.
func (w *Window) close(free, wronged int64) {
	w.Over, w.Unused = max(w.Admitted-free, 0), max(free-w.Admitted, 0)
	w.Early = min(w.Unused, w.Arrived-w.Admitted)
	w.Overtaken = wronged - w.Early
}

// total adds up the windows of a scenario.
func (s *Scenario) total(windows []Window) Traffic {
	t := Traffic{Windows: windows}
	for _, w := range windows {
		t.Arrived += w.Arrived
		t.Admitted += w.Admitted
		t.Early += w.Early
		t.Overtaken += w.Overtaken
		t.Over += w.Over
		t.Unused += w.Unused
	}
	t.Queued, t.Stranded = t.Arrived-t.Admitted, t.Early
	n := int64(len(windows))
	t.EarlyPercent = percent(t.Early, t.Arrived)
	t.OvertakenPercent = percent(t.Overtaken, t.Arrived)
	t.OverPercent = percent(t.Over, s.Limit*n)
	t.UnusedPercent = percent(t.Unused, s.Free()*n)
	t.StrandedPercent = percent(t.Stranded, s.Free()*n)
	return t
}

// percent is 0 for a whole of 0.
func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
