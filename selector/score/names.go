package score

import (
	"slices"

	"github.com/expr-lang/expr/ast"
	exprtypes "github.com/expr-lang/expr/types"

	"dispatcher/selector"
)

// known lists the names for error messages.
const known = "labels.NAME, lane, priority, channel.name, channel.labels.NAME, load_ratio and price"

// field is a part of Input that an expression can name.
type field int

const (
	messageLabel field = iota + 1
	channelLabel
	channelName
	lane
	priority
	loadRatio
	price
)

// name is one value that an expression reads. An evaluation looks up only these, however many
// labels there are.
type name struct {
	text  string // such as channel.labels.quality; what the program reads
	field field
	label string // of a label: its key
}

// nameOf recognises the nodes that are a name, such as channel.labels["quality"].
func nameOf(node ast.Node) (name, bool) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return plainName(n.Value)
	case *ast.MemberNode:
		key, fixed := n.Property.(*ast.StringNode)
		if !fixed {
			return name{}, false
		}
		switch {
		case isIdentifier(n.Node, "labels"):
			return name{text: "labels." + key.Value, field: messageLabel, label: key.Value}, true
		case isIdentifier(n.Node, "channel") && key.Value == "name":
			return name{text: "channel.name", field: channelName}, true
		case isChannelLabels(n.Node):
			return name{text: "channel.labels." + key.Value, field: channelLabel, label: key.Value}, true
		}
	}
	return name{}, false
}

func plainName(text string) (name, bool) {
	switch text {
	case "lane":
		return name{text: text, field: lane}, true
	case "priority":
		return name{text: text, field: priority}, true
	case "load_ratio":
		return name{text: text, field: loadRatio}, true
	case "price":
		return name{text: text, field: price}, true
	}
	return name{}, false
}

func isIdentifier(node ast.Node, text string) bool {
	n, ok := node.(*ast.IdentifierNode)
	return ok && n.Value == text
}

func isChannelLabels(node ast.Node) bool {
	n, ok := node.(*ast.MemberNode)
	if !ok || !isIdentifier(n.Node, "channel") {
		return false
	}
	key, ok := n.Property.(*ast.StringNode)
	return ok && key.Value == "labels"
}

// flatten replaces each name of several parts by one variable.
type flatten struct{}

// Visit is called for each node after its children.
func (flatten) Visit(node *ast.Node) {
	if _, member := (*node).(*ast.MemberNode); !member {
		return
	}
	if n, ok := nameOf(*node); ok {
		ast.Patch(node, &ast.IdentifierNode{Value: n.text})
	}
}

// types gives the compiler the type of each name. A label may have any type.
func types(names []name) exprtypes.Map {
	out := make(exprtypes.Map, len(names)+2)
	for _, n := range names {
		out[n.text] = n.typ()
	}
	return out
}

func (n name) typ() exprtypes.Type {
	switch n.field {
	case channelName, lane:
		return exprtypes.String
	case priority, loadRatio, price:
		return exprtypes.Float64
	case messageLabel, channelLabel:
	}
	return exprtypes.Any
}

// value is the value of the name. A missing label is nil.
func (n name) value(in *Input) any {
	switch n.field {
	case messageLabel:
		return content(in.Labels, n.label)
	case channelLabel:
		return content(in.ChannelLabels, n.label)
	case channelName:
		return in.Channel
	case lane:
		return in.Lane
	case priority:
		return float64(in.Priority)
	case loadRatio:
		return in.LoadRatio
	case price:
		return in.Price
	}
	return nil
}

func content(labels map[string]selector.Value, key string) any {
	value, found := labels[key]
	switch {
	case !found:
		return nil
	case value.IsNumber:
		return value.Number
	}
	return value.Text
}

// add appends the name unless it is listed.
func add(names []name, n name) []name {
	if slices.Contains(names, n) {
		return names
	}
	return append(names, n)
}
