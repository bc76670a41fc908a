package decide

import (
	"fmt"
	"net/url"
	"strings"

	"dispatcher/admission"
)

// LimitName names the limit that excluded a channel. The zero value names none.
type LimitName struct {
	admission.Key
	Over bool // over all channels, not only the excluded one
}

// prefixShown is how many characters of a limit's prefix a name holds, the plus included. Names are
// kept when numbers are deleted, and a prefix may be a whole number.
const prefixShown = 8

// NameLimit names a limit.
func NameLimit(l *admission.Limit, over bool) LimitName {
	n := LimitName{l.Key(), over}
	n.Scope.Prefix = n.Scope.Prefix[:min(len(n.Scope.Prefix), prefixShown)]
	return n
}

// Named reports whether the name names a limit.
func (n *LimitName) Named() bool { return n.Window != 0 }

// On is how the limit is displayed; see admission.Key.On.
func (n *LimitName) On(channel string) string {
	if !n.Named() {
		return ""
	}
	if n.Over {
		channel = ""
	}
	return n.Key.On(channel)
}

// overAll precedes the window of a limit over all channels.
const overAll = "all"

// append writes the name behind a reason: ":1d:messages" for a limit of the channel,
// ":1d:segments:tenant:shop" for a narrower one, ":all:1d:money:tenant:shop" over all channels.
func (n *LimitName) append(dst []byte) []byte {
	if !n.Named() {
		return dst
	}
	dst = append(dst, ':')
	if n.Over {
		dst = append(append(dst, overAll...), ':')
	}
	dst = append(append(append(dst, n.Window.String()...), ':'), n.Unit.String()...)
	switch {
	case n.Scope.Tenant != "":
		dst = appendWord(append(dst, ":tenant:"...), n.Scope.Tenant)
	case n.Scope.Prefix != "":
		dst = appendWord(append(dst, ":prefix:"...), n.Scope.Prefix)
	}
	return dst
}

// StoredReason is a reason with the limit, as ReadReason reads it.
func StoredReason(reason string, n LimitName) string {
	return string(n.append(appendWord(nil, reason)))
}

// ReadReason splits a reason as it is stored, in a ranking or as the cause of a figure, into its
// word and the limit that it names.
func ReadReason(stored string) (reason string, n LimitName, err error) {
	reason, name, named := strings.Cut(stored, ":")
	if reason, err = url.PathUnescape(reason); err != nil || !named {
		return reason, n, err
	}
	if rest, over := strings.CutPrefix(name, overAll+":"); over {
		n.Over, name = true, rest
	}
	window, name, _ := strings.Cut(name, ":")
	unit, scope, narrow := strings.Cut(name, ":")
	if n.Window, err = admission.ParseWindow(window); err != nil {
		return reason, LimitName{}, err
	}
	if n.Unit, err = admission.ParseUnit(unit); err != nil || unit == "" {
		return reason, LimitName{}, fmt.Errorf("%q names no limit", stored)
	}
	if !narrow {
		return reason, n, nil
	}
	if scope, err = url.PathUnescape(scope); err == nil {
		n.Scope, err = admission.ParseScope(scope)
	}
	return reason, n, err
}
