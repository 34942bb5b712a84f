package firestore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"feedbox/domain/fault"
)

// code is the service's condition. Errors of a connection have one, too; OK if err is none of
// the client's.
func code(err error) codes.Code {
	if s, known := status.FromError(err); known {
		return s.Code()
	}
	return codes.OK
}

// refused reports whether a commit was refused by what is stored: nothing of it was made.
func refused(err error) bool {
	return slices.Contains([]codes.Code{codes.AlreadyExists, codes.FailedPrecondition, codes.NotFound}, code(err))
}

// answered reports whether err tells that the service did its work.
func answered(err error) bool {
	return err == nil || refused(err) || code(err) == codes.InvalidArgument || code(err) == codes.Aborted
}

// Ambiguous implements recordstore.Store.
func (Rows) Ambiguous(err error) bool {
	return slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown}, code(err))
}

// asFault turns an error of the client into a fault. What names what was done.
func asFault(what string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	wrapped := fmt.Errorf("%s: %w", what, err)
	switch c := code(err); {
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Unavailable, "canceled", "the request was given up", wrapped)
	case c == codes.PermissionDenied, c == codes.Unauthenticated:
		return fault.Wrap(fault.Internal, "", "the database refuses this identity", wrapped)
	case c == codes.ResourceExhausted:
		return fault.Wrap(fault.Throttled, "", "the store takes no more at the moment; try again", wrapped)
	case c == codes.FailedPrecondition:
		return fault.Wrap(fault.Internal, "", "the database lacks an index", wrapped)
	case c == codes.InvalidArgument, c == codes.NotFound, c == codes.Unimplemented:
		return fault.Wrap(fault.Internal, "", "the store refused the request", wrapped)
	default:
		return fault.Wrap(fault.Unavailable, "store_unavailable", "the store does not answer; try again", wrapped)
	}
}
