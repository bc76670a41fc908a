package envelope

// setSelectors reads the array of selectors, keeping its order.
func (r *reader) setSelectors(value string) {
	if value[0] != '[' {
		r.fail(BadField, "selectors is not an array")
		return
	}
	for element := range elements(value) {
		if len(r.Selectors) == maxEntries {
			r.fail(BadField, "selectors has more than 32 entries")
			return
		}
		r.Selectors = append(r.Selectors, r.selector(element))
		if r.problem != nil {
			return
		}
	}
}

// selector reads one {key, operator, value, expires_after}; the first three are required.
func (r *reader) selector(element string) Selector {
	if element[0] != '{' {
		r.fail(BadField, "selectors: an entry is not an object")
		return Selector{}
	}
	var s Selector
	seen := make(map[string]bool, 4)
	for name, value := range members(element) {
		if seen[name] {
			r.fail(DuplicateField, "selectors: a field stands there twice")
		}
		var ok bool
		switch name {
		case "key":
			s.Key, ok = str(value)
			ok = ok && printable(s.Key, 1, maxWord)
		case "operator":
			var operator string
			operator, ok = str(value)
			s.Operator = Operator(operator)
			ok = ok && s.Operator.Valid()
		case "value":
			s.Value, ok = content(value)
		case "expires_after":
			if value == "null" {
				ok = true
			} else if s.ExpiresAfter, ok = parseSpan(value); !ok {
				r.fail(BadField, "selectors: expires_after is neither a span such as "+
					`"30s" or "1h30m" nor a number of seconds above 0`)
			}
		default:
			r.unknown(name)
			continue
		}
		if !ok {
			r.fail(BadField, "selectors: a key, operator or value has the wrong type or form")
		}
		seen[name] = true
	}
	if !seen["key"] || !seen["operator"] || !seen["value"] {
		r.fail(BadField, "selectors: an entry lacks its key, operator or value")
	}
	return s
}
