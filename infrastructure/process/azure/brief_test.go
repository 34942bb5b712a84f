package azure

import (
	"errors"
	"fmt"
	"net/url"
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

// marked is an error that must not be retried, as azcosmos and azidentity have them.
type marked struct{ error }

func (marked) NonRetriable()   {}
func (m marked) Unwrap() error { return m.error }

func TestOnlyAMissingTokenIsAFailureOfTheCredential(t *testing.T) {
	t.Parallel()
	for want, err := range map[bool]error{
		true:  fmt.Errorf("read: %w", marked{errors.New("DefaultAzureCredential: failed to acquire a token")}),
		false: fmt.Errorf("read: %w", marked{&url.Error{Op: "Get", URL: "http://127.0.0.1:1/", Err: errors.New("connection refused")}}),
	} {
		if got := CredentialFailed(err); got != want {
			t.Errorf("%v: %t, want %t", err, got, want)
		}
	}
}
