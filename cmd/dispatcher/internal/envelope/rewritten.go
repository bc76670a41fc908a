package envelope

import "bytes"

// DecodeRewritten decodes a record, and once more with its number in E.164 when that is what is
// wrong. rewrite converts the number. rewritten is nil when it had nothing to convert.
func DecodeRewritten(
	raw []byte, allowUnknown bool, rewrite func([]byte) []byte,
) (m Message, rewritten []byte, problem *Problem) {
	m, problem = Decode(raw, allowUnknown)
	if problem == nil || problem.Code != BadNumber || rewrite == nil {
		return m, nil, problem
	}
	if rewritten = rewrite(raw); bytes.Equal(rewritten, raw) {
		return m, nil, problem
	}
	m, problem = Decode(rewritten, allowUnknown)
	return m, rewritten, problem
}
