package status

// Status of a finding.
const (
	OK   = "ok"
	Warn = "warn" // works, but an operator should know
	Fail = "fail" // "dispatcher run" would not work
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"` // what to do; empty when all is well
}

// Warned makes a finding with the status Warn.
func Warned(check, detail, fix string) Finding {
	return Finding{Check: check, Status: Warn, Detail: detail, Fix: fix}
}
