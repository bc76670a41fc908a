package audit

import (
	"dispatcher/admission"
)

var (
	shop    = admission.Scope{Tenant: "shop"}
	british = admission.Scope{Prefix: "+44"}
)
