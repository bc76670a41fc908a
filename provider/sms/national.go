package sms

// void marks a code without a character in the tables below; it stands in none of them.
const void = '·'

// codes finds the code of a character in one table: by pages of 128 characters, because each table has
// its characters in two or three places of Unicode. A page that has none is nil.
type codes struct{ pages [maxPage + 1]*[128]byte }

const (
	maxPage = 0x221E >> 7 // of the infinity sign, the last character of any table
	noCode  = 0xFF
)

// code is that of a character, or noCode.
func (t *codes) code(r rune) byte {
	if r < 0 || r>>7 > maxPage {
		return noCode
	}
	page := t.pages[r>>7]
	if page == nil {
		return noCode
	}
	return page[r&0x7F]
}

// put gives a character its code, unless it has a lower one.
func (t *codes) put(r rune, code byte) {
	page := t.pages[r>>7]
	if page == nil {
		page = new([128]byte)
		for i := range page {
			page[i] = noCode
		}
		t.pages[r>>7] = page
	}
	if page[r&0x7F] == noCode {
		page[r&0x7F] = code
	}
}

// characters are those of the codes of one table; 0 where there is none.
type characters [0x80]rune

// The tables by language. Those of DefaultTables are the default alphabet and its extension table; where a
// language has no locking table, nothing can be written with it.
var (
	lockingCodes, lockingCharacters = newTables(lockingTables[:])
	singleCodes, singleCharacters   = newTables(singleTables[:])
)

func newTables(tables []string) ([languages]codes, [languages]characters) {
	var find [languages]codes
	var shown [languages]characters
	for language, table := range tables {
		code := byte(0)
		for _, r := range table {
			if r != void && r != Escape {
				find[language].put(r, code)
				shown[language][code] = r
			}
			code++
		}
	}
	return find, shown
}

// plainOf are the characters without an escape.
func plainOf(l Language) *characters {
	if l == DefaultTables {
		return &decode.plain
	}
	return &lockingCharacters[l]
}

// escapedOf are the characters behind an escape.
func escapedOf(l Language) *characters {
	if l == DefaultTables {
		return &decode.extended
	}
	return &singleCharacters[l]
}

// septet returns how r is written with these tables, or none.
func (s Shift) septet(r rune) septet {
	if s == (Shift{}) {
		return encode.septet(r)
	}
	if s.Locking == DefaultTables {
		if c := encode.septet(r); c&extended == 0 {
			return c
		}
	} else if c := lockingCodes[s.Locking].code(r); c != noCode {
		return septet(c)
	}
	if s.Single == DefaultTables {
		if c := encode.septet(r); c&extended != 0 {
			return c
		}
	} else if c := singleCodes[s.Single].code(r); c != noCode {
		return septet(c) | extended
	}
	return none
}
