package cosmos

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Brief is the text of err in one line. The SDK's error for a refused request is the
// whole reply; what is kept is its status and code.
func Brief(err error) string {
	text := err.Error()
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		short := fmt.Sprintf("the service answers %d %s", reply.StatusCode, http.StatusText(reply.StatusCode))
		if reply.ErrorCode != "" && reply.ErrorCode != http.StatusText(reply.StatusCode) {
			short += " (" + reply.ErrorCode + ")"
		}
		text = strings.ReplaceAll(text, reply.Error(), short)
	}
	return strings.Join(strings.Fields(text), " ")
}
