package cosmosemu

import (
	"net/http"
	"strings"
)

// The account has two gateways. The routing gateway (the classic one) misreads
// some item ids in URLs; the compute gateway does not. By default the emulator is
// friendly and serves all ids everywhere.

// gateway is one entrance to the emulator.
type gateway struct {
	srv    *Server
	quirks bool // answer as the routing gateway does
}

func (g gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.srv.serve(w, r, g.quirks) }

// routingQuirk is the routing gateway's answer to an item id it cannot route, nil
// for others. Source: TestItemIdEncodingRoutingGW of azcosmos v1.5.0.
func routingQuirk(rt *route) *wireError {
	if rt.resource != "docs" || rt.id == "" {
		return nil
	}
	switch {
	case strings.ContainsAny(rt.id, "\r\n\t"):
		return refuse(http.StatusBadRequest, "The request URL is invalid")
	case strings.HasSuffix(rt.id, " "), strings.ContainsAny(rt.id, `/\#`), hasPercentEscape(rt.id):
		return unauthorized("The input authorization token can't serve the request: the routing gateway decodes the id in another way than it is signed")
	}
	return nil
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
