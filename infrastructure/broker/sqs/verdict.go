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
	"feedbox/infrastructure/broker/internal/publish"
)

const certain, unsure = publish.Certain, publish.Unsure

// verdictOn gives the verdict for the code of a failed request or message; ours says that the
// service blames it on the sender.
func verdictOn(code string, ours bool) publish.Verdict {
	switch code {
	case "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist":
		return publish.As(relay.Blocked, "queue_not_found", certain)
	case "AccessDenied", "AccessDeniedException", "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch":
		return publish.As(relay.Blocked, "access_denied", certain)
	case "KmsAccessDenied", "KmsDisabled", "KmsNotFound":
		return publish.As(relay.Blocked, "key_denied", certain)
	case "ExpiredToken":
		return publish.As(relay.Outage, "credential", certain)
	case "RequestThrottled", "ThrottlingException", "KmsThrottled":
		return publish.As(relay.Outage, "throttled", certain)
	case "InvalidMessageContents", "InvalidParameterValue", "InvalidAttributeValue":
		return publish.As(relay.Refused, "malformed", unsure)
	case "UnsupportedOperation":
		return publish.As(relay.Refused, "not_allowed", unsure)
	case "BatchRequestTooLong":
		return publish.As(relay.Refused, "too_large", unsure)
	}
	if ours {
		return publish.As(relay.Refused, "refused", unsure)
	}
	return publish.As(relay.Outage, "server_error", unsure)
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
	v := publish.As(relay.Outage, "unreachable", certain)
	if said, ok := errors.AsType[smithy.APIError](err); ok {
		v = verdictOn(said.ErrorCode(), said.ErrorFault() == smithy.FaultClient)
		if v.Class == relay.Refused && messages > 1 {
			v = publish.As(relay.Outage, v.Reason, unsure) // nobody knows whose fault; the keys come again alone
		}
	} else if attempt.Err() != nil {
		v = publish.As(relay.Outage, "send_timeout", certain)
	}
	return v.Of(err)
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
