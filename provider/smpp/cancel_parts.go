package smpp

import (
	"context"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// cancelParts cancels the parts of a message that the SMSC took before it rejected another: the message ends with that, and
// a fragment of it would be of no use to anybody. It is the one case in which it is certain that nothing else will be done with what was
// taken. The result of the message does not depend on it: a part that cannot be cancelled any more was sent.
func (c *Client) cancelParts(ctx context.Context, s *session, p *plan, parts []provider.Part) {
	for i := range parts {
		if parts[i].Outcome != provider.Accepted || parts[i].Reference == "" {
			continue
		}
		_, err := s.ask(ctx, &pdu.CancelSM{
			ServiceType: c.cfg.ServiceType, MessageID: parts[i].Reference, Source: p.common.Source, Dest: p.common.Dest,
		})
		if err != nil {
			return // it does not answer, and the sender has waited for long enough
		}
	}
}
