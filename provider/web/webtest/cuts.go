package webtest

import (
	"net/url"
	"slices"
	"sort"
	"strings"
)

// Field is a field of a form.
type Field struct{ Name, Value string }

// Fields are the fields of a form, one value each, in the order of their names.
func Fields(form url.Values) []Field {
	var all []Field
	for name, values := range form {
		all = append(all, Field{name, values[0]})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// Joined is the signed text of vendors that put no separators between names and values.
func Joined(fields []Field) string {
	var text strings.Builder
	for _, f := range fields {
		text.WriteString(f.Name + f.Value)
	}
	return text.String()
}

// Encode is the body of a form, in the order of its fields.
func Encode(fields []Field) []byte {
	pairs := make([]string, len(fields))
	for i, f := range fields {
		pairs[i] = url.QueryEscape(f.Name) + "=" + url.QueryEscape(f.Value)
	}
	return []byte(strings.Join(pairs, "&"))
}

// longestCutName bounds the names that EachCut makes.
const longestCutName = 12

// EachCut calls try with other forms that have the same joined text, with the names in order: one
// more field cut out of a value, in each way, and values extended over the following fields, whole
// or in part.
func EachCut(all []Field, try func([]Field)) {
	for i, f := range all {
		for name := range len(f.Value) + 1 { // a name begins here
			// and its value here
			for value := name; value <= min(len(f.Value), name+longestCutName); value++ {
				if inOrder(all, i, f.Value[name:value], i+1) {
					try(
						slices.Concat(all[:i],
							[]Field{
								{f.Name, f.Value[:name]}, {f.Value[name:value], f.Value[value:]},
							}, all[i+1:]))
				}
			}
		}
		swallowed := f
		for j := i + 1; j < len(all); j++ {
			whole := all[j].Name + all[j].Value
			for at := range len(whole) { // another name begins here
				for end := at + 1; end <= min(len(whole), at+longestCutName); end++ {
					if inOrder(all, i, whole[at:end], j+1) {
						half := Field{f.Name, swallowed.Value + whole[:at]}
						try(
							slices.Concat(all[:i], []Field{half, {whole[at:end], whole[end:]}},
								all[j+1:]))
					}
				}
			}
			swallowed.Value += whole
			try(slices.Concat(all[:i], []Field{swallowed}, all[j+1:]))
		}
	}
}

// inOrder reports whether a name may be between two fields; in another order the signed text would
// differ.
func inOrder(all []Field, before int, name string, behind int) bool {
	return all[before].Name <= name && (behind == len(all) || name <= all[behind].Name)
}
