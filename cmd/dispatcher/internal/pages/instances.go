package pages

import (
	"net/http"

	"dispatcher/cmd/dispatcher/internal/status"
)

func (s *Server) instances(w http.ResponseWriter, r *request) error {
	v, err := s.instancesNow(r)
	if err != nil {
		return err
	}
	return s.show(w, r, "instances", "Instances", v)
}

// instancesNow lists the running processes.
func (s *Server) instancesNow(r *request) (any, error) {
	current, err := s.cfg.Ledger.Routing.Current(r.Context())
	if err != nil {
		return nil, err
	}
	return status.ReadInstances(r.Context(), s.cfg.Ledger, s.cfg.DeadAfter, current.Version)
}
