package sms

// The single shift tables of the scripts of India share the signs of the codes 0x00 to 0x18 and the
// Latin capitals of 0x40 to 0x7F.
const (
	indicSigns = "@£$¥¿\"¤%&'\f*+·-/" + "<=>¡^¡_#*"
	indicLatin = "|ABCDEFGHIJKLMNO" + "PQRSTUVWXYZ·····" + "·····€··········" + "················"
)

// singleTables replace the extension table behind the escape: the characters of the codes 0x00 to
// 0x7F in their order, 3GPP TS 23.038 sections A.2.1 to A.2.13 (version 18.0.0). void stands where the standard
// has no character, or a control character, and 0x1B is reserved for a further table.
var singleTables = [languages]string{
	Turkish: "··········\f·····" +
		"····^······\x1b····" +
		"········{}·····\\" +
		"············[~]·" +
		"|······Ğ·İ······" +
		"···Ş············" +
		"···ç·€·ğ·ı······" +
		"···ş············",
	Spanish: "·········ç\f·····" +
		"····^······\x1b····" +
		"········{}·····\\" +
		"············[~]·" +
		"|Á·······Í·····Ó" +
		"·····Ú··········" +
		"·á···€···í·····ó" +
		"·····ú··········",
	Portuguese: "·····ê···ç\fÔô·Áá" +
		"··ΦΓ^ΩΠΨΣΘ·\x1b···Ê" +
		"········{}·····\\" +
		"············[~]·" +
		"|À·······Í·····Ó" +
		"·····Ú·····ÃÕ···" +
		"·Â···€···í·····ó" +
		"·····ú·····ãõ··â",
	Bengali: indicSigns +
		"\u09E6\u09E7\x1b\u09E8\u09E9\u09EA\u09EB" +
		"\u09EC\u09ED\u09EE\u09EF\u09DF\u09E0\u09E1\u09E2{}\u09E3\u09F2\u09F3\u09F4\u09F5\\" +
		"\u09F6\u09F7\u09F8\u09F9\u09FA·······[~]·" +
		indicLatin,
	Gujarati: indicSigns +
		"\u0964\u0965\x1b\u0AE6\u0AE7\u0AE8\u0AE9" +
		"\u0AEA\u0AEB\u0AEC\u0AED\u0AEE\u0AEF··{}·····\\" +
		"············[~]·" +
		indicLatin,
	Hindi: indicSigns +
		"\u0964\u0965\x1b\u0966\u0967\u0968\u0969" +
		"\u096A\u096B\u096C\u096D\u096E\u096F\u0951\u0952{}\u0953\u0954\u0958\u0959\u095A\\" +
		"\u095B\u095C\u095D\u095E\u095F\u0960\u0961\u0962\u0963\u0970\u0971·[~]·" +
		indicLatin,
	Kannada: indicSigns +
		"\u0964\u0965\x1b\u0CE6\u0CE7\u0CE8\u0CE9" +
		"\u0CEA\u0CEB\u0CEC\u0CED\u0CEE\u0CEF\u0CDE\u0CF1{}\u0CF2····\\" +
		"············[~]·" +
		indicLatin,
	Malayalam: indicSigns +
		"\u0964\u0965\x1b\u0D66\u0D67\u0D68\u0D69" +
		"\u0D6A\u0D6B\u0D6C\u0D6D\u0D6E\u0D6F\u0D70\u0D71{}\u0D72\u0D73\u0D74\u0D75\u0D7A\\" +
		"\u0D7B\u0D7C\u0D7D\u0D7E\u0D7F·······[~]·" +
		indicLatin,
	Oriya: indicSigns +
		"\u0964\u0965\x1b\u0B66\u0B67\u0B68\u0B69" +
		"\u0B6A\u0B6B\u0B6C\u0B6D\u0B6E\u0B6F\u0B5C\u0B5D{}\u0B5F\u0B70\u0B71··\\" +
		"············[~]·" +
		indicLatin,
	Punjabi: indicSigns +
		"\u0964\u0965\x1b\u0A66\u0A67\u0A68\u0A69" +
		"\u0A6A\u0A6B\u0A6C\u0A6D\u0A6E\u0A6F\u0A59\u0A5A{}\u0A5B\u0A5C\u0A5E\u0A75·\\" +
		"············[~]·" +
		indicLatin,
	Tamil: indicSigns +
		"\u0964\u0965\x1b\u0BE6\u0BE7\u0BE8\u0BE9" +
		"\u0BEA\u0BEB\u0BEC\u0BED\u0BEE\u0BEF\u0BF3\u0BF4{}\u0BF5\u0BF6\u0BF7\u0BF8\u0BFA\\" +
		"············[~]·" +
		indicLatin,
	Telugu: indicSigns +
		"··\x1b\u0C66\u0C67\u0C68\u0C69" +
		"\u0C6A\u0C6B\u0C6C\u0C6D\u0C6E\u0C6F\u0C58\u0C59{}\u0C78\u0C79\u0C7A\u0C7B\u0C7C\\" +
		"\u0C7D\u0C7E\u0C7F·········[~]·" +
		indicLatin,
	Urdu: indicSigns +
		"\u0600\u0601\x1b\u06F0\u06F1\u06F2\u06F3" +
		"\u06F4\u06F5\u06F6\u06F7\u06F8\u06F9\u060C\u060D{}\u060E\u060F\u0610\u0611\u0612\\" +
		"\u0613\u0614\u061B\u061F\u0640\u0652\u0658\u066B\u066C\u0672\u0673\u06CD[~]\u06D4" +
		indicLatin,
}
