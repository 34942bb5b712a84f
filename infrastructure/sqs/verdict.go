package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/internal/sending"
)

type verdict = sending.Verdict

const certain, unsure = sending.Certain, sending.Unsure

// byCode gives the verdict for the code of a failed request.
var byCode = map[string]verdict{
	"AWS.SimpleQueueService.NonExistentQueue": sending.As(relay.Blocked, "queue_not_found", certain),
	"QueueDoesNotExist":                       sending.As(relay.Blocked, "queue_not_found", certain),
	"AccessDenied":                            sending.As(relay.Blocked, "access_denied", certain),
	"AccessDeniedException":                   sending.As(relay.Blocked, "access_denied", certain),
	"InvalidClientTokenId":                    sending.As(relay.Blocked, "access_denied", certain),
	"UnrecognizedClientException":             sending.As(relay.Blocked, "access_denied", certain),
	"SignatureDoesNotMatch":                   sending.As(relay.Blocked, "access_denied", certain),
	"KmsAccessDenied":                         sending.As(relay.Blocked, "key_denied", certain),
	"KmsDisabled":                             sending.As(relay.Blocked, "key_denied", certain),
	"KmsNotFound":                             sending.As(relay.Blocked, "key_denied", certain),
	"ExpiredToken":                            sending.As(relay.Outage, "credential", certain),
	"RequestThrottled":                        sending.As(relay.Outage, "throttled", certain),
	"ThrottlingException":                     sending.As(relay.Outage, "throttled", certain),
	"KmsThrottled":                            sending.As(relay.Outage, "throttled", certain),
	"InvalidMessageContents":                  sending.As(relay.Refused, "malformed", unsure),
	"InvalidParameterValue":                   sending.As(relay.Refused, "malformed", unsure),
	"InvalidAttributeValue":                   sending.As(relay.Refused, "malformed", unsure),
	"UnsupportedOperation":                    sending.As(relay.Refused, "not_allowed", unsure),
	"BatchRequestTooLong":                     sending.As(relay.Refused, "too_large", unsure),
}

// Classify turns the failure of a request that sends nothing into a *relay.Error, or into the
// cause of ctx's end.
func Classify(ctx context.Context, err error) error { return classify(ctx, ctx, err, 0) }

// classify turns the failure of a request with so many messages into what the relay decides by.
// ctx is that of the Publish call, attempt that of the request.
func classify(ctx, attempt context.Context, err error, messages int) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	v := sending.As(relay.Outage, "unreachable", certain)
	if said, ok := errors.AsType[smithy.APIError](err); ok {
		v = verdictOn(said.ErrorCode(), said.ErrorFault() == smithy.FaultClient)
		if v.Class == relay.Refused && messages > 1 {
			v = sending.As(relay.Outage, v.Reason, unsure) // nobody knows whose fault; the keys come again alone
		}
	} else if attempt.Err() != nil {
		v = sending.As(relay.Outage, "send_timeout", certain)
	}
	return v.Of(err)
}

// verdictOn gives the verdict for a code, also one that is not in the table.
func verdictOn(code string, ours bool) verdict {
	v, known := byCode[code]
	switch {
	case !known && ours:
		return sending.As(relay.Refused, "refused", unsure)
	case !known:
		return sending.As(relay.Outage, "server_error", unsure)
	}
	return v
}

// told is what an answer says of one message.
func told(f types.BatchResultErrorEntry) error {
	return fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
}

// place is where the message with this id is in a request of n.
func place(id *string, n int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < n
}
