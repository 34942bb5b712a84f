package cosmosemu

import (
	"fmt"
	"net"
	"net/http"
	"slices"
)

// location is a region in the document of the account.
type location struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

// listenInRegions opens an address for each region but the first.
func (s *Server) listenInRegions(kind entranceKind) error {
	for i := 1; i < len(s.options.Regions); i++ {
		listener, host, err := s.regionListener(i)
		if err != nil {
			return fmt.Errorf("region %s: %w", s.options.Regions[i], err)
		}
		s.regions = append(s.regions, host)
		if err := s.enter(listener, gateway{s, kind, i}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) regionListener(i int) (net.Listener, string, error) {
	if o := &s.options; o.Network != nil {
		host := fmt.Sprintf("region%d-%s", i, o.Host)
		listener, err := o.Network.Listen(host)
		return listener, host, err
	}
	name, _, err := net.SplitHostPort(s.host)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", "0")) //nolint:noctx // binding does not block
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return listener, net.JoinHostPort(name, port), err
}

// RegionEndpoint is the endpoint of a region of Options.Regions, "" for another name.
func (s *Server) RegionEndpoint(name string) string {
	for _, l := range s.locations(s.host) {
		if l.Name == name {
			return l.Endpoint
		}
	}
	return ""
}

// locations are the regions, the first of them at host.
func (s *Server) locations(host string) []location {
	list := make([]location, 0, len(s.options.Regions))
	for i, name := range s.options.Regions {
		if i > 0 {
			host = s.regions[i-1]
		}
		list = append(list, location{name, s.scheme() + host + "/"})
	}
	return list
}

// writeRegions is how many of the regions, from the first on, take writes.
func (s *Server) writeRegions() int {
	if s.options.MultipleWriteRegions {
		return len(s.options.Regions)
	}
	return 1
}

// checkRegion refuses a write in a region that takes none, by which an SDK learns that
// the account has another write region.
func (x *request) checkRegion() *wireError {
	if x.region < x.srv.writeRegions() || !slices.Contains(writing, x.route.op) {
		return nil
	}
	return refuse(http.StatusForbidden, "The requested operation cannot be performed at this region: %s takes no writes", x.srv.options.Regions[x.region]).sub(subWriteForbidden)
}

// writing are the operations that change something.
var writing = []Operation{
	OpCreateDatabase, OpDeleteDatabase, OpCreateContainer, OpReplaceContainer, OpDeleteContainer,
	OpCreateUser, OpReplaceUser, OpDeleteUser, OpCreatePermission, OpReplacePermission, OpDeletePermission,
	OpReplaceOffer, OpCreateItem, OpUpsertItem, OpReplaceItem, OpPatchItem, OpDeleteItem, OpBatch, OpDeletePartition,
}
