package sqs

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"feedbox/application/relay"
)

// verdict is a line of the table: how a failure is reported, and whether it may be the
// message's fault as well as that of the set-up or the way to it.
type verdict struct {
	class  relay.Class
	reason string
	doubt  bool
}

const certain, unsure = false, true

// byCode gives the verdict for the code of a failed request.
var byCode = map[string]verdict{
	"AWS.SimpleQueueService.NonExistentQueue": {relay.Blocked, "queue_not_found", certain},
	"QueueDoesNotExist":                       {relay.Blocked, "queue_not_found", certain},
	"AccessDenied":                            {relay.Blocked, "access_denied", certain},
	"AccessDeniedException":                   {relay.Blocked, "access_denied", certain},
	"InvalidClientTokenId":                    {relay.Blocked, "access_denied", certain},
	"UnrecognizedClientException":             {relay.Blocked, "access_denied", certain},
	"SignatureDoesNotMatch":                   {relay.Blocked, "access_denied", certain},
	"KmsAccessDenied":                         {relay.Blocked, "key_denied", certain},
	"KmsDisabled":                             {relay.Blocked, "key_denied", certain},
	"KmsNotFound":                             {relay.Blocked, "key_denied", certain},
	"ExpiredToken":                            {relay.Outage, "credential", certain},
	"RequestThrottled":                        {relay.Outage, "throttled", certain},
	"ThrottlingException":                     {relay.Outage, "throttled", certain},
	"KmsThrottled":                            {relay.Outage, "throttled", certain},
	"InvalidMessageContents":                  {relay.Refused, "malformed", unsure},
	"InvalidParameterValue":                   {relay.Refused, "malformed", unsure},
	"InvalidAttributeValue":                   {relay.Refused, "malformed", unsure},
	"UnsupportedOperation":                    {relay.Refused, "not_allowed", unsure},
	"BatchRequestTooLong":                     {relay.Refused, "too_large", unsure},
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
	v := verdict{relay.Outage, "unreachable", certain}
	if said, ok := errors.AsType[smithy.APIError](err); ok {
		var known bool
		switch v, known = byCode[said.ErrorCode()]; {
		case !known && said.ErrorFault() == smithy.FaultClient:
			v = verdict{relay.Refused, "refused", unsure}
		case !known:
			v = verdict{relay.Outage, "server_error", unsure}
		}
		if v.class == relay.Refused && messages > 1 {
			v = verdict{relay.Outage, v.reason, unsure} // nobody knows whose fault; the keys come again alone
		}
	} else if attempt.Err() != nil {
		v = verdict{relay.Outage, "send_timeout", certain}
	}
	return &relay.Error{Class: v.class, Reason: v.reason, Ambiguous: v.doubt, Err: err}
}

// failed turns what an answer says of one message into what the relay decides by.
func failed(f types.BatchResultErrorEntry) error {
	code, text := deref(f.Code), deref(f.Message)
	v, known := byCode[code]
	switch {
	case !known && f.SenderFault:
		v = verdict{relay.Refused, "refused", unsure}
	case !known:
		v = verdict{relay.Outage, "server_error", unsure}
	}
	return &relay.Error{Class: v.class, Reason: v.reason, Ambiguous: v.doubt, Err: fmt.Errorf("%s: %s", code, text)}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
