package cosmosemu

import (
	"net/http"
	"strings"
)

// The account has two gateways, and they treat strange item ids differently. What
// the vendor's suites expect of each differs from one suite to the next, so there
// are three kinds of entrance.
type entranceKind uint8

const (
	// defaultEntrance is what Microsoft.Azure.Cosmos' users meet: an id with a
	// backslash cannot be created, one with a slash can but is not found by it.
	defaultEntrance entranceKind = iota
	// routingEntrance answers as the routing gateway does (the classic one):
	// TestItemIdEncodingRoutingGW of azcosmos v1.5.0.
	routingEntrance
	// computeEntrance serves all ids: TestItemIdEncodingComputeGW.
	computeEntrance
)

// gateway is one entrance to the emulator.
type gateway struct {
	srv    *Server
	kind   entranceKind
	region int // in Options.Regions
}

func (g gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.srv.serve(w, r, g) }

// routeItem is the entrance's answer to an item id in a URL that it cannot route, nil
// for others.
func (k entranceKind) routeItem(rt *route) *wireError {
	if rt.resource != "docs" || rt.id == "" || k == computeEntrance {
		return nil
	}
	switch {
	case k == defaultEntrance && strings.Contains(rt.id, "/"):
		return noItem(rt.id)
	case k == defaultEntrance:
		return nil
	case strings.ContainsAny(rt.id, "\r\n\t"):
		return refuse(http.StatusBadRequest, "The request URL is invalid")
	case strings.HasSuffix(rt.id, " "), strings.ContainsAny(rt.id, `/\#`), hasPercentEscape(rt.id):
		return unauthorized("The input authorization token can't serve the request: the routing gateway decodes the id in another way than it is signed")
	}
	return nil
}

// refusesID tells whether an item of that id cannot be written here.
func (k entranceKind) refusesID(id string) bool {
	return k == defaultEntrance && strings.Contains(id, `\`)
}

// hasPercentEscape tells whether an id has % and two hexadecimal digits in it.
func hasPercentEscape(id string) bool {
	for i := 0; i+2 < len(id); i++ {
		if id[i] == '%' && isHex(id[i+1]) && isHex(id[i+2]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}
