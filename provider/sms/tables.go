package sms

// The single shift tables of the scripts of India share the signs of the codes 0x00 to 0x18 and the
// Latin capitals of 0x40 to 0x7F.
const (
	indicSigns = "@£$¥¿\"¤%&'\f*+·-/" + "<=>¡^¡_#*"
	indicLatin = "|ABCDEFGHIJKLMNO" + "PQRSTUVWXYZ·····" + "·····€··········" + "················"
)

// singleTables replace the extension table: the characters of the codes 0x00 to 0x7F in their
// order, 3GPP TS 23.038 sections A.2.1 to A.2.13 (version 18.0.0). void means that the standard has
// no character, or a control character; 0x1B is reserved for another table.
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

// lockingTables replace the default alphabet: the characters of the codes 0x00 to 0x7F in their
// order, sixteen to a line, 3GPP TS 23.038 sections A.3.1 to A.3.13 (version 18.0.0). A language
// without an entry has no such table: Spanish uses the default alphabet. 0x1B is the escape, and
// void means that the standard has no character.
// One misprint of the standard is corrected, as handsets do: code 0x24 of Kannada is U+0CA1 (not
// U+0CAA, which is also at 0x3D).
var lockingTables = [languages]string{
	Turkish: "@£$¥€éùıòÇ\nĞğ\rÅå" +
		"Δ_ΦΓΛΩΠΨΣΘΞ\x1bŞşßÉ" +
		" !\"#¤%&'()*+,-./" +
		"0123456789:;<=>?" +
		"İABCDEFGHIJKLMNO" +
		"PQRSTUVWXYZÄÖÑÜ§" +
		"çabcdefghijklmno" +
		"pqrstuvwxyzäöñüà",
	Portuguese: "@£$¥êéúíóç\nÔô\rÁá" +
		"Δ_ªÇÀ∞^\\€Ó|\x1bÂâÊÉ" +
		" !\"#º%&'()*+,-./" +
		"0123456789:;<=>?" +
		"ÍABCDEFGHIJKLMNO" +
		"PQRSTUVWXYZÃÕÚÜ§" +
		"~abcdefghijklmno" +
		"pqrstuvwxyzãõ`üà",
	Bengali: "\u0981\u0982\u0983\u0985\u0986\u0987\u0988\u0989\u098A\u098B\n\u098C·\r·\u098F" +
		"\u0990··\u0993\u0994\u0995\u0996\u0997\u0998\u0999\u099A\x1b\u099B\u099C\u099D\u099E" +
		" !\u099F\u09A0\u09A1\u09A2\u09A3\u09A4)(\u09A5\u09A6,\u09A7.\u09A8" +
		"0123456789:;·\u09AA\u09AB?" +
		"\u09AC\u09AD\u09AE\u09AF\u09B0·\u09B2···\u09B6\u09B7\u09B8\u09B9\u09BC\u09BD" +
		"\u09BE\u09BF\u09C0\u09C1\u09C2\u09C3\u09C4··\u09C7\u09C8··\u09CB\u09CC\u09CD" +
		"\u09CEabcdefghijklmno" +
		"pqrstuvwxyz\u09D7\u09DC\u09DD\u09F0\u09F1",
	Gujarati: "\u0A81\u0A82\u0A83\u0A85\u0A86\u0A87\u0A88\u0A89\u0A8A\u0A8B\n\u0A8C\u0A8D\r·\u0A8F" +
		"\u0A90\u0A91·\u0A93\u0A94\u0A95\u0A96\u0A97\u0A98\u0A99\u0A9A\x1b\u0A9B\u0A9C\u0A9D\u0A9E" +
		" !\u0A9F\u0AA0\u0AA1\u0AA2\u0AA3\u0AA4)(\u0AA5\u0AA6,\u0AA7.\u0AA8" +
		"0123456789:;·\u0AAA\u0AAB?" +
		"\u0AAC\u0AAD\u0AAE\u0AAF\u0AB0·\u0AB2\u0AB3·\u0AB5\u0AB6\u0AB7\u0AB8\u0AB9\u0ABC\u0ABD" +
		"\u0ABE\u0ABF\u0AC0\u0AC1\u0AC2\u0AC3\u0AC4\u0AC5·\u0AC7\u0AC8\u0AC9·\u0ACB\u0ACC\u0ACD" +
		"\u0AD0abcdefghijklmno" +
		"pqrstuvwxyz\u0AE0\u0AE1\u0AE2\u0AE3\u0AF1",
	Hindi: "\u0901\u0902\u0903\u0905\u0906\u0907\u0908\u0909\u090A\u090B\n\u090C\u090D\r\u090E\u090F" +
		"\u0910\u0911\u0912\u0913\u0914\u0915\u0916\u0917\u0918\u0919\u091A\x1b\u091B\u091C\u091D\u091E" +
		" !\u091F\u0920\u0921\u0922\u0923\u0924)(\u0925\u0926,\u0927.\u0928" +
		"0123456789:;\u0929\u092A\u092B?" +
		"\u092C\u092D\u092E\u092F\u0930\u0931\u0932\u0933\u0934\u0935\u0936\u0937\u0938\u0939\u093C\u093D" +
		"\u093E\u093F\u0940\u0941\u0942\u0943\u0944\u0945\u0946\u0947\u0948\u0949\u094A\u094B\u094C\u094D" +
		"\u0950abcdefghijklmno" +
		"pqrstuvwxyz\u0972\u097B\u097C\u097E\u097F",
	Kannada: "·\u0C82\u0C83\u0C85\u0C86\u0C87\u0C88\u0C89\u0C8A\u0C8B\n\u0C8C·\r\u0C8E\u0C8F" +
		"\u0C90·\u0C92\u0C93\u0C94\u0C95\u0C96\u0C97\u0C98\u0C99\u0C9A\x1b\u0C9B\u0C9C\u0C9D\u0C9E" +
		" !\u0C9F\u0CA0\u0CA1\u0CA2\u0CA3\u0CA4)(\u0CA5\u0CA6,\u0CA7.\u0CA8" +
		"0123456789:;·\u0CAA\u0CAB?" +
		"\u0CAC\u0CAD\u0CAE\u0CAF\u0CB0\u0CB1\u0CB2\u0CB3·\u0CB5\u0CB6\u0CB7\u0CB8\u0CB9\u0CBC\u0CBD" +
		"\u0CBE\u0CBF\u0CC0\u0CC1\u0CC2\u0CC3\u0CC4·\u0CC6\u0CC7\u0CC8·\u0CCA\u0CCB\u0CCC\u0CCD" +
		"\u0CD5abcdefghijklmno" +
		"pqrstuvwxyz\u0CD6\u0CE0\u0CE1\u0CE2\u0CE3",
	Malayalam: "·\u0D02\u0D03\u0D05\u0D06\u0D07\u0D08\u0D09\u0D0A\u0D0B\n\u0D0C·\r\u0D0E\u0D0F" +
		"\u0D10·\u0D12\u0D13\u0D14\u0D15\u0D16\u0D17\u0D18\u0D19\u0D1A\x1b\u0D1B\u0D1C\u0D1D\u0D1E" +
		" !\u0D1F\u0D20\u0D21\u0D22\u0D23\u0D24)(\u0D25\u0D26,\u0D27.\u0D28" +
		"0123456789:;·\u0D2A\u0D2B?" +
		"\u0D2C\u0D2D\u0D2E\u0D2F\u0D30\u0D31\u0D32\u0D33\u0D34\u0D35\u0D36\u0D37\u0D38\u0D39·\u0D3D" +
		"\u0D3E\u0D3F\u0D40\u0D41\u0D42\u0D43\u0D44·\u0D46\u0D47\u0D48·\u0D4A\u0D4B\u0D4C\u0D4D" +
		"\u0D57abcdefghijklmno" +
		"pqrstuvwxyz\u0D60\u0D61\u0D62\u0D63\u0D79",
	Oriya: "\u0B01\u0B02\u0B03\u0B05\u0B06\u0B07\u0B08\u0B09\u0B0A\u0B0B\n\u0B0C·\r·\u0B0F" +
		"\u0B10··\u0B13\u0B14\u0B15\u0B16\u0B17\u0B18\u0B19\u0B1A\x1b\u0B1B\u0B1C\u0B1D\u0B1E" +
		" !\u0B1F\u0B20\u0B21\u0B22\u0B23\u0B24)(\u0B25\u0B26,\u0B27.\u0B28" +
		"0123456789:;·\u0B2A\u0B2B?" +
		"\u0B2C\u0B2D\u0B2E\u0B2F\u0B30·\u0B32\u0B33·\u0B35\u0B36\u0B37\u0B38\u0B39\u0B3C\u0B3D" +
		"\u0B3E\u0B3F\u0B40\u0B41\u0B42\u0B43\u0B44··\u0B47\u0B48··\u0B4B\u0B4C\u0B4D" +
		"\u0B56abcdefghijklmno" +
		"pqrstuvwxyz\u0B57\u0B60\u0B61\u0B62\u0B63",
	Punjabi: "\u0A01\u0A02\u0A03\u0A05\u0A06\u0A07\u0A08\u0A09\u0A0A·\n··\r·\u0A0F" +
		"\u0A10··\u0A13\u0A14\u0A15\u0A16\u0A17\u0A18\u0A19\u0A1A\x1b\u0A1B\u0A1C\u0A1D\u0A1E" +
		" !\u0A1F\u0A20\u0A21\u0A22\u0A23\u0A24)(\u0A25\u0A26,\u0A27.\u0A28" +
		"0123456789:;·\u0A2A\u0A2B?" +
		"\u0A2C\u0A2D\u0A2E\u0A2F\u0A30·\u0A32\u0A33·\u0A35\u0A36·\u0A38\u0A39\u0A3C·" +
		"\u0A3E\u0A3F\u0A40\u0A41\u0A42····\u0A47\u0A48··\u0A4B\u0A4C\u0A4D" +
		"\u0A51abcdefghijklmno" +
		"pqrstuvwxyz\u0A70\u0A71\u0A72\u0A73\u0A74",
	Tamil: "·\u0B82\u0B83\u0B85\u0B86\u0B87\u0B88\u0B89\u0B8A·\n··\r\u0B8E\u0B8F" +
		"\u0B90·\u0B92\u0B93\u0B94\u0B95···\u0B99\u0B9A\x1b·\u0B9C·\u0B9E" +
		" !\u0B9F···\u0BA3\u0BA4)(··,·.\u0BA8" +
		"0123456789:;\u0BA9\u0BAA·?" +
		"··\u0BAE\u0BAF\u0BB0\u0BB1\u0BB2\u0BB3\u0BB4\u0BB5\u0BB6\u0BB7\u0BB8\u0BB9··" +
		"\u0BBE\u0BBF\u0BC0\u0BC1\u0BC2···\u0BC6\u0BC7\u0BC8·\u0BCA\u0BCB\u0BCC\u0BCD" +
		"\u0BD0abcdefghijklmno" +
		"pqrstuvwxyz\u0BD7\u0BF0\u0BF1\u0BF2\u0BF9",
	Telugu: "\u0C01\u0C02\u0C03\u0C05\u0C06\u0C07\u0C08\u0C09\u0C0A\u0C0B\n\u0C0C·\r\u0C0E\u0C0F" +
		"\u0C10·\u0C12\u0C13\u0C14\u0C15\u0C16\u0C17\u0C18\u0C19\u0C1A\x1b\u0C1B\u0C1C\u0C1D\u0C1E" +
		" !\u0C1F\u0C20\u0C21\u0C22\u0C23\u0C24)(\u0C25\u0C26,\u0C27.\u0C28" +
		"0123456789:;·\u0C2A\u0C2B?" +
		"\u0C2C\u0C2D\u0C2E\u0C2F\u0C30\u0C31\u0C32\u0C33·\u0C35\u0C36\u0C37\u0C38\u0C39·\u0C3D" +
		"\u0C3E\u0C3F\u0C40\u0C41\u0C42\u0C43\u0C44·\u0C46\u0C47\u0C48·\u0C4A\u0C4B\u0C4C\u0C4D" +
		"\u0C55abcdefghijklmno" +
		"pqrstuvwxyz\u0C56\u0C60\u0C61\u0C62\u0C63",
	Urdu: "\u0627\u0622\u0628\u067B\u0680\u067E\u06A6\u062A\u06C2\u067F\n\u0679\u067D\r\u067A\u067C" +
		"\u062B\u062C\u0681\u0684\u0683\u0685\u0686\u0687\u062D\u062E\u062F\x1b\u068C\u0688\u0689\u068A" +
		" !\u068F\u068D\u0630\u0631\u0691\u0693)(\u0699\u0632,\u0696.\u0698" +
		"0123456789:;\u069A\u0633\u0634?" +
		"\u0635\u0636\u0637\u0638\u0639\u0641\u0642\u06A9\u06AA\u06AB\u06AF\u06B3\u06B1\u0644\u0645\u0646" +
		"\u06BA\u06BB\u06BC\u0648\u06C4\u06D5\u06C1\u06BE\u0621\u06CC\u06D0\u06D2\u064D\u0650\u064F\u0657" +
		"\u0654abcdefghijklmno" +
		"pqrstuvwxyz\u0655\u0651\u0653\u0656\u0670",
}
