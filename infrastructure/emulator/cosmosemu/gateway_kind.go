package cosmosemu

import (
	"net/http"
	"strings"
)

// gatewayKind decides how unusual item ids are treated. The account has two gateways
// that differ in this, and the vendor's test suites contradict each other in their
// expectations, so there are three kinds.
type gatewayKind uint8

const (
	// defaultGateway behaves as the .NET SDK's tests expect: an id with a backslash
	// cannot be created; one with a slash can be created but not read by its id.
	defaultGateway gatewayKind = iota
	// routingGateway behaves as the classic gateway: TestItemIdEncodingRoutingGW of
	// azcosmos v1.5.0.
	routingGateway
	// computeGateway accepts all ids: TestItemIdEncodingComputeGW of azcosmos v1.5.0.
	computeGateway
)

// checkItemID refuses an item id in a URL that this gateway cannot route.
func (k gatewayKind) checkItemID(rt *route) *wireError {
	if rt.resource != "docs" || rt.id == "" || k == computeGateway {
		return nil
	}
	switch {
	case k == defaultGateway && strings.Contains(rt.id, "/"):
		return noItem(rt.id)
	case k == defaultGateway:
		return nil
	case strings.ContainsAny(rt.id, "\r\n\t"):
		return refuse(http.StatusBadRequest, "The request URL is invalid")
	case strings.HasSuffix(rt.id, " "), strings.ContainsAny(rt.id, `/\#`), hasPercentEscape(rt.id):
		return unauthorized("The input authorization token can't serve the request: the routing gateway decodes the id in another way than it is signed")
	}
	return nil
}

// refusesID reports whether this gateway refuses to write an item of that id.
func (k gatewayKind) refusesID(id string) bool {
	return k == defaultGateway && strings.Contains(id, `\`)
}

// hasPercentEscape reports whether an id contains % and two hexadecimal digits.
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
