package sandbox

import (
	"net/http"
	"slices"

	"dispatcher/provider/providertest"
	"dispatcher/provider/web/webtest"
)

// forgetful plays a vendor that has not taken what it never answered: a lookup does not find it, as there is no
// receipt for it and no id.
func forgetful(shape webtest.Protocol) webtest.Protocol {
	if other, ok := shape.(webtest.ExtraRequests); ok {
		return &forgetting{shape, other}
	}
	return shape
}

// forgetting is a shape whose lookups do not see everything.
type forgetting struct {
	webtest.Protocol
	other webtest.ExtraRequests
}

// Other answers as if nothing but what was answered had come.
func (f *forgetting) ServeExtra(w http.ResponseWriter, r *http.Request, body []byte, known []webtest.Submit) bool {
	return f.other.ServeExtra(w, r, body, slices.DeleteFunc(known, func(s webtest.Submit) bool {
		return s.Reply == providertest.Lose || s.Reply == providertest.Cut
	}))
}
