package firestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"feedbox/domain/fault"
)

// code returns the condition of the service or of the connection; OK if err is not an error of
// the client.
func code(err error) codes.Code {
	if s, known := status.FromError(err); known {
		return s.Code()
	}
	return codes.OK
}

// refused reports whether the stored documents refused a commit. Nothing of it was stored then.
func refused(err error) bool {
	return slices.Contains([]codes.Code{codes.AlreadyExists, codes.FailedPrecondition, codes.NotFound}, code(err))
}

// answered reports whether the service processed the request.
func answered(err error) bool {
	return err == nil || refused(err) || code(err) == codes.InvalidArgument || code(err) == codes.Aborted
}

// tokenless reports whether the client has no token, because the service of identities does not answer. It has
// the code of a database that refuses the token; the text is of grpc-go (http2_client.go).
func tokenless(err error) bool {
	return code(err) == codes.Unauthenticated && strings.Contains(err.Error(), "transport: per-RPC creds failed")
}

// Ambiguous implements recordstore.Store.
func (Records) Ambiguous(err error) bool {
	return slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown}, code(err))
}

// asFault returns an error of the client as a fault. what names the operation.
func asFault(what string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	wrapped := fmt.Errorf("%s: %w", what, err)
	switch c := code(err); {
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Unavailable, "canceled", "the request was canceled", wrapped)
	case tokenless(err):
		return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", wrapped)
	case c == codes.PermissionDenied, c == codes.Unauthenticated:
		return fault.Wrap(fault.Internal, "", "the database refuses this identity", wrapped)
	case c == codes.ResourceExhausted:
		return fault.Wrap(fault.Throttled, "", "the store is busy; try again later", wrapped)
	case c == codes.FailedPrecondition:
		return fault.Wrap(fault.Internal, "", "the database lacks an index", wrapped)
	case c == codes.InvalidArgument, c == codes.NotFound, c == codes.Unimplemented:
		return fault.Wrap(fault.Internal, "", "the store refused the request", wrapped)
	default:
		return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", wrapped)
	}
}
