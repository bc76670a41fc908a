package sandbox

import (
	"dispatcher/provider/aws"
	"dispatcher/provider/bird"
	"dispatcher/provider/httpapi"
	"dispatcher/provider/infobip"
	"dispatcher/provider/plivo"
	"dispatcher/provider/sinch"
	"dispatcher/provider/telnyx"
	"dispatcher/provider/twilio"
	"dispatcher/provider/vonage"
	"dispatcher/provider/web"
)

// openers are the adapters' openers, as in internal/app.
var openers = map[string]web.OpenFunc{
	"aws": aws.Open, "bird": bird.Open, "httpapi": httpapi.Open, "infobip": infobip.Open,
	"plivo": plivo.Open, "sinch": sinch.Open, "telnyx": telnyx.Open, "twilio": twilio.Open,
	"vonage": vonage.Open,
}
