package azure

import (
	"errors"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	reply := func(status int, code string) error {
		return fmt.Errorf("read: %w", &azcore.ResponseError{StatusCode: status, ErrorCode: code})
	}
	for want, err := range map[string]error{
		"read: the service answers 403 Forbidden":      reply(403, "Forbidden"),
		"read: the service answers 404 Not Found":      reply(404, ""),
		"read: the service answers 409 Conflict (Odd)": reply(409, "Odd"),
		"a b": errors.New("a\n  b"),
	} {
		if got := Brief(err); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
