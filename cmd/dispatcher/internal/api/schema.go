package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"dispatcher/cmd/dispatcher/internal/status"
)

// aliases tell how types that write their own JSON look.
func aliases(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[status.Quantity](), reflect.TypeFor[quantitySchema]())
	r.RegisterTypeAlias(reflect.TypeFor[*json.Number](), reflect.TypeFor[*float64]())
	r.RegisterTypeAlias(reflect.TypeFor[json.Number](), reflect.TypeFor[float64]())
	r.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[anySchema]())
}

// quantitySchema is an amount: of messages and segments a number, of money a decimal text.
type quantitySchema struct{}

// Schema describes it.
func (quantitySchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "a number of messages or segments, or an amount of money as a decimal text",
		OneOf:       []*huma.Schema{{Type: huma.TypeInteger}, {Type: huma.TypeString}},
	}
}

// anySchema is any JSON.
type anySchema struct{}

// Schema describes it.
func (anySchema) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// finish completes the description with what types cannot say.
func (a *API) finish() {
	schemas := a.huma.OpenAPI().Components.Schemas.Map()
	for _, at := range [][2]string{
		{"ControlRouteWeights", "ramp"},
	} {
		s, ok := schemas[at[0]]
		if !ok {
			continue
		}
		property := s.Properties[at[1]]
		s.Properties[at[1]] = &huma.Schema{
			OneOf: []*huma.Schema{property, {Type: "null"}},
		}
	}
}
