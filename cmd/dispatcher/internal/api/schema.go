package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"dispatcher/cmd/dispatcher/internal/status"
)

// aliases registers the schemas of types with their own MarshalJSON.
func aliases(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[status.Quantity](), reflect.TypeFor[quantitySchema]())
	r.RegisterTypeAlias(reflect.TypeFor[*json.Number](), reflect.TypeFor[*float64]())
	r.RegisterTypeAlias(reflect.TypeFor[json.Number](), reflect.TypeFor[float64]())
	r.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[anySchema]())
}

// quantitySchema is the schema of an amount: a number of messages or segments, or money as a
// decimal string.
type quantitySchema struct{}

// Schema describes it.
func (quantitySchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "a number of messages or segments, or an amount of money as a decimal text",
		OneOf:       []*huma.Schema{{Type: huma.TypeInteger}, {Type: huma.TypeString}},
	}
}

// anySchema is the schema of any JSON value.
type anySchema struct{}

// Schema describes it.
func (anySchema) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// finish adds to the description what Go types cannot express: a route may have no ramp.
func (a *API) finish() {
	route := a.huma.OpenAPI().Components.Schemas.Map()["ControlRouteWeights"]
	route.Properties["ramp"] = &huma.Schema{
		OneOf: []*huma.Schema{route.Properties["ramp"], {Type: "null"}},
	}
}
