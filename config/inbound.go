package config

import (
	"strings"
	"unicode"
)

// Inbound says which tenant gets the messages of subscribers, and which words change an opt-out
// list.
type Inbound struct {
	// Keywords hold for every number without its own.
	Keywords Keywords
	// Numbers and Channels assign messages to tenants by our number or by the channel that they came
	// through; a number takes precedence. All other messages belong to the tenant without a name.
	Numbers, Channels []InboundSource
}

// InboundSource is a number or a channel that messages of subscribers come to.
type InboundSource struct {
	// Name is the number, E.164 with plus or a short code, or the name of the channel.
	Name   string
	Tenant string
	// Channels are those over which keywords to a number change the opt-out list; nil means all.
	Channels []string
	// Keywords that are nil are inherited from Inbound.Keywords.
	Keywords Keywords
}

// Keywords are messages that change an opt-out list, in the form of Keyword. Nil means the
// inherited ones.
type Keywords struct {
	Stop, Start []string
}

// standardKeywords are the default: the words that mobile operators and providers of the United
// States agree on. YES, which some of them accept as a start word, is left out, because it also
// answers surveys and questions.
var standardKeywords = Keywords{
	Stop:  []string{"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT"},
	Start: []string{"START", "UNSTOP"},
}

// Keyword is the form in which a text is compared with keywords: in capitals, without leading and
// trailing characters other than letters, digits and combining marks. It is empty for a text
// without any of these.
func Keyword(text string) string {
	return strings.ToUpper(strings.TrimFunc(text,
		func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
		}))
}

// maxKeyword bounds a keyword; a longer text is an ordinary message.
const maxKeyword = 40

func readInbound(top fields, channels []string) Inbound {
	in := Inbound{Keywords: standardKeywords}
	v, ok := top.get("inbound")
	if !ok {
		return in
	}
	f, ok := v.fields(inboundPart)
	if !ok {
		return in
	}
	if v, ok := f.get("keywords"); ok {
		in.Keywords = readKeywords(v, standardKeywords)
	}
	isChannel := oneOf("channel", channels, "define it under channels")
	if v, ok := f.get("numbers"); ok {
		in.Numbers = readSources(v, in.Keywords, checkNumber, isChannel)
	}
	if v, ok := f.get("channels"); ok {
		in.Channels = readSources(v, in.Keywords, isChannel, nil)
	}
	return in
}

// readSources reads numbers or channels with their tenants and keywords. Only numbers may have
// channels, which isChannel checks.
func readSources(v value, standard Keywords, check, isChannel nameCheck) []InboundSource {
	entries, _ := v.entries()
	var out []InboundSource
	names := map[string]string{} // of the sources read so far, without plus
	for _, e := range entries {
		check(e.value, e.name)
		s := InboundSource{Name: e.name}
		f, ok := e.value.fields(sourcePart)
		if !ok {
			continue
		}
		if v, ok := f.get("tenant"); ok {
			s.Tenant, _ = v.text()
		}
		if v, ok := f.get("keywords"); ok {
			s.Keywords = readKeywords(v, standard)
		}
		if v, ok := f.get("channels"); ok && isChannel == nil {
			v.fail("only a number has channels; remove it")
		} else if ok {
			s.Channels = readWords(f, "channels", "channel", isChannel)
		}
		if twin, taken := names[bare(s.Name)]; taken {
			e.value.fail("is the same number as %s; keep one of them", twin)
		}
		names[bare(s.Name)] = s.Name
		out = append(out, s)
	}
	return out
}

// bare is a number without its plus, which some providers leave out.
func bare(number string) string { return strings.TrimPrefix(number, "+") }

// checkNumber checks a number that subscribers write to: E.164 with plus, or a short code.
func checkNumber(v value, s string) bool {
	digits := bare(s)
	long := digits != s
	switch {
	case digits == "" || strings.Trim(digits,
		"0123456789") != "" || len(digits) > 15 || len(digits) < 3:
		v.fail(`%q is not a number; write "+15550100" in quotes, or a short code such as "12345"`,
			s)
	case !long && len(digits) > 8:
		v.fail(`%q is too long for a short code; write a number with its plus, in quotes`, s)
	default:
		return true
	}
	return false
}

// readKeywords reads the words of both kinds; a kind that is missing keeps the standard ones.
func readKeywords(v value, standard Keywords) Keywords {
	k := standard
	f, ok := v.fields(keywordsPart)
	if !ok {
		return k
	}
	if v, ok := f.get("stop"); ok {
		k.Stop = readKeywordList(v)
	}
	if v, ok := f.get("start"); ok {
		k.Start = readKeywordList(v)
	}
	starts := make(map[string]bool, len(k.Start))
	for _, word := range k.Start {
		starts[word] = true
	}
	for _, word := range k.Stop {
		if starts[word] {
			v.fail("%q stands under stop and under start; keep it under one", word)
		}
	}
	return k
}

func readKeywordList(v value) []string {
	items := v.items()
	if len(items) == 0 {
		v.fail("is an empty list; remove the key for the usual words")
	}
	var out []string
	listed := make(map[string]bool, len(items))
	for _, item := range items {
		s, ok := item.text()
		word := Keyword(s)
		switch {
		case !ok:
		case word == "" || len([]rune(word)) > maxKeyword:
			item.fail("%q is not a keyword; write a word of up to %d letters and digits", s,
				maxKeyword)
		case listed[word]:
			item.fail("%q is listed twice; remove one of the two", s)
		default:
			listed[word] = true
			out = append(out, word)
		}
	}
	return out
}
