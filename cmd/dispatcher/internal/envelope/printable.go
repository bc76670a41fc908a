package envelope

import "unicode"

// unprintable are the characters that ids, tenants, senders and keys must not have: control and
// format characters, separators except the ASCII space, private use, tags and noncharacters.
// Unassigned characters are allowed, so that the result does not depend on the Unicode version of
// the build. The patterns of docs/schema list the same ranges, because not every regular expression
// engine has \p{...}; a test compares the two.
var unprintable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0000, Hi: 0x001f, Stride: 1}, // C0 controls
		{Lo: 0x007f, Hi: 0x00a0, Stride: 1}, // delete, C1 controls, no-break space
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x0600, Hi: 0x0605, Stride: 1}, // Arabic number signs
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // Arabic letter mark
		{Lo: 0x06dd, Hi: 0x06dd, Stride: 1}, // Arabic end of ayah
		{Lo: 0x070f, Hi: 0x070f, Stride: 1}, // Syriac abbreviation mark
		{Lo: 0x0890, Hi: 0x0891, Stride: 1}, // Arabic currency marks above
		{Lo: 0x08e2, Hi: 0x08e2, Stride: 1}, // Arabic disputed end of ayah
		{Lo: 0x1680, Hi: 0x1680, Stride: 1}, // Ogham space mark
		{Lo: 0x180e, Hi: 0x180e, Stride: 1}, // Mongolian vowel separator
		{Lo: 0x2000, Hi: 0x200f, Stride: 1}, // spaces, joiners, direction marks
		{Lo: 0x2028, Hi: 0x202f, Stride: 1}, // line and paragraph separator, embeddings, narrow space
		{Lo: 0x205f, Hi: 0x206f, Stride: 1}, // mathematical space, invisible operators, isolates
		{Lo: 0x3000, Hi: 0x3000, Stride: 1}, // ideographic space
		{Lo: 0xe000, Hi: 0xf8ff, Stride: 1}, // private use
		{Lo: 0xfdd0, Hi: 0xfdef, Stride: 1}, // noncharacters
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xfff0, Hi: 0xfffb, Stride: 1}, // interlinear annotation
		{Lo: 0xfffe, Hi: 0xffff, Stride: 1}, // noncharacters
	},
	R32: []unicode.Range32{
		{Lo: 0x110bd, Hi: 0x110bd, Stride: 1},  // Kaithi number sign
		{Lo: 0x110cd, Hi: 0x110cd, Stride: 1},  // Kaithi number sign above
		{Lo: 0x13430, Hi: 0x1343f, Stride: 1},  // Egyptian joiners
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1},  // shorthand format controls
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1},  // musical format controls
		{Lo: 0xe0000, Hi: 0xe00ff, Stride: 1},  // tags
		{Lo: 0xf0000, Hi: 0x10ffff, Stride: 1}, // private use
	},
	LatinOffset: 3,
}

// printable reports whether s has between least and most characters, none of them unprintable.
func printable(s string, least, most int) bool {
	n := 0
	for _, c := range s {
		if c < ' ' || c >= 0x7f && unicode.Is(unprintable, c) {
			return false
		}
		n++
	}
	return least <= n && n <= most
}
