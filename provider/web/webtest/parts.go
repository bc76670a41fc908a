package webtest

// PartProtocol is a Protocol whose vendor gives each part of a text an id of its own, and reports on each.
type PartProtocol interface {
	// Part is a submit as its part i, counted from 0, is known to the vendor: under the id of that part.
	Part(s *Submit, i int) Submit
}

// about are the submits that a receipt is to be sent for: s itself or, with a PartProtocol shape, its parts.
func about(shape Protocol, s *Submit, r Receipt) []Submit {
	parted, ok := shape.(PartProtocol)
	if !ok {
		return []Submit{*s}
	}
	var list []Submit
	for i := range s.Parts {
		if r.Part == 0 || r.Part == i+1 {
			list = append(list, parted.Part(s, i))
		}
	}
	return list
}
