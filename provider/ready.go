package provider

// Words of Channel.Ready. They are stored with the choices that passed a channel over, and
// stand in metrics and in the sentences of explain, so that every adapter uses these and no others.
const (
	Connecting    = "connecting"    // no connection yet
	Unbound       = "unbound"       // there was one, it is lost
	BindRefused   = "bind_refused"  // the provider refuses the login
	Closed        = "closed"        // Close was called
	BreakerOpen   = "breaker_open"  // it failed so often that it is left alone for a while
	Misconfigured = "misconfigured" // its settings cannot be used on this machine
	Busy          = "busy"          // so much waits for it in this process that more would come too late

	// Probing stands beside true: one submission is welcome, to see whether the channel has recovered.
	Probing = "probing"
)

// Unready reports whether the word is one that Channel.Ready may say beside false.
func Unready(word string) bool {
	switch word {
	case Connecting, Unbound, BindRefused, Closed, BreakerOpen, Misconfigured, Busy:
		return true
	}
	return false
}
