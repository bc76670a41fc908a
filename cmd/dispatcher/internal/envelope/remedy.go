package envelope

// Remedy says what to do about a record that cannot be used, in the words of docs/kafka.md. It is
// empty for an unknown code.
func (c Code) Remedy() string {
	switch c {
	case TooLarge:
		return "keep the record under 64 KiB"
	case BadJSON:
		return "publish one JSON object in UTF-8"
	case UnknownField:
		return "correct the name, or have unknown fields allowed"
	case DuplicateField:
		return "write each field once"
	case BadID:
		return "give 1 to 64 printable characters"
	case BadNumber:
		return "give E.164 with the plus"
	case NoText:
		return "give a text"
	case BadField:
		return "detail names the field and its form"
	case Expired:
		return "expires_at, or the lane's time to live, had passed when the record was read: " +
			"look for lag"
	case TooManySegments:
		return "shorten the text, or raise the route's limit; dispatcher segments counts it"
	case BadSender:
		return "give a sender that a network can show"
	case NoRoute:
		return "add a route that matches"
	case Conflict:
		return "give the second message an id of its own"
	case Unstorable:
		return "the database refused the row; its log says why"
	case BlockedNumber, CountryNotAllowed: // such a message is rejected, so there is no dead record
	}
	return ""
}
