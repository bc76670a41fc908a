package app

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

// openers are the adapters for HTTP APIs by their word in the routing document: the one visible list.
func openers() map[string]web.OpenFunc {
	return map[string]web.OpenFunc{
		"aws":     aws.Open,
		"bird":    bird.Open,
		"httpapi": httpapi.Open,
		"infobip": infobip.Open,
		"plivo":   plivo.Open,
		"sinch":   sinch.Open,
		"telnyx":  telnyx.Open,
		"twilio":  twilio.Open,
		"vonage":  vonage.Open,
	}
}

// opener is the adapter of a kind of provider with an HTTP API; nil for the kinds that have none.
func opener(provider string) web.OpenFunc { return openers()[provider] }

// Webbed reports whether the provider of a channel has an HTTP API, so that its receipts come by webhook.
func Webbed(provider string) bool { return opener(provider) != nil }

// counter is how a vendor with an HTTP API, which cuts texts itself, counts the segments of a text; nil when it has the alphabets
// of package sms and no others.
func counter(provider string) func(text string) int {
	if provider == "telnyx" {
		return telnyx.Segments
	}
	return nil
}
