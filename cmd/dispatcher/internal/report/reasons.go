package report

// WaitWords say why messages wait, for a reason of the closed list, as the paragraph of a story does.
func WaitWords(reason string) string {
	if words, ok := waitWords[reason]; ok {
		return words
	}
	return whyNot(reason, 1)
}
