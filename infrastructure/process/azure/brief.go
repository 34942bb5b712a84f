package azure

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Brief returns the text of err in one line. An azcore.ResponseError prints the whole reply,
// so Brief replaces it by its status and code.
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

// StatusOf returns the HTTP status of a refused request, 0 if err is no reply.
func StatusOf(err error) int {
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return reply.StatusCode
	}
	return 0
}

// CredentialFailed reports whether no token could be obtained. azidentity marks its errors as non-retriable.
// azcosmos marks those of the network so too, but they have the URL of the request.
func CredentialFailed(err error) bool {
	var marked interface {
		error
		NonRetriable()
	}
	_, network := errors.AsType[*url.Error](err)
	return errors.As(err, &marked) && !network && StatusOf(err) == 0
}
