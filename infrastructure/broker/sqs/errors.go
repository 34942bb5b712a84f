package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// ruleFor returns the rule for the code of a failed request or message of SQS or SNS. senderFault reports
// whether the service attributes the failure to the sender.
//
// An error of SQS may have two codes: its name, and that of the earlier query protocol in a header, which the
// client prefers. A fault of the set-up must be listed under both, because the service attributes it to the
// sender, and the event would be parked.
func ruleFor(code string, senderFault bool) publish.Rule {
	switch strings.TrimPrefix(code, "AWS.SimpleQueueService.") {
	case "NonExistentQueue", "QueueDoesNotExist", "InvalidAddress":
		return publish.Rule{Class: relay.Blocked, Reason: "queue_not_found"}
	case "NotFound":
		return publish.Rule{Class: relay.Blocked, Reason: "topic_not_found"}
	case "AccessDenied", "AuthorizationError", "AccessDeniedException", "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch",
		"InvalidSignatureException", "IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"InvalidSecurity", "NotAuthorized", "OptInRequired":
		return publish.Rule{Class: relay.Blocked, Reason: "access_denied"}
	case "KmsAccessDenied", "KmsDisabled", "KmsNotFound", "KmsInvalidState", "KmsInvalidKeyUsage", "KmsOptInRequired",
		"KMS.AccessDeniedException", "KMS.DisabledException", "KMS.NotFoundException", "KMS.InvalidStateException", "KMS.InvalidKeyUsageException", "KMS.OptInRequired",
		"KMSAccessDenied", "KMSDisabled", "KMSNotFound", "KMSInvalidState", "KMSOptInRequired":
		return publish.Rule{Class: relay.Blocked, Reason: "key_denied"}
	case "ExpiredToken", "ExpiredTokenException", "RequestExpired":
		return publish.Rule{Class: relay.Outage, Reason: "credential"}
	case "RequestThrottled", "Throttling", "ThrottlingException", "KmsThrottled", "KMS.ThrottlingException", "Throttled", "KMSThrottling":
		return publish.Rule{Class: relay.Outage, Reason: "throttled"}
	case "InvalidMessageContents", "InvalidParameterValue", "InvalidAttributeValue", "InvalidParameter", "ParameterValueInvalid", "ValidationException":
		return publish.Rule{Class: relay.Refused, Reason: "malformed", Ambiguous: true}
	case "UnsupportedOperation":
		return publish.Rule{Class: relay.Refused, Reason: "not_allowed", Ambiguous: true}
	case "BatchRequestTooLong":
		return publish.Rule{Class: relay.Refused, Reason: "too_large", Ambiguous: true}
	}
	if senderFault {
		return publish.Rule{Class: relay.Refused, Reason: "refused", Ambiguous: true}
	}
	return publish.Rule{Class: relay.Outage, Reason: "server_error", Ambiguous: true}
}

// isCredential reports whether err is that of another service, from which the client gets its credential first,
// such as STS. It has a code, but the request was not sent, so it says nothing about a message.
func isCredential(err error) bool {
	if _, replied := errors.AsType[*smithyhttp.ResponseError](err); !replied {
		_, ok := errors.AsType[smithy.APIError](err) // of an endpoint for credentials, whose client returns no OperationError
		return ok
	}
	request, ok := errors.AsType[*smithy.OperationError](err)
	if ok {
		_, ok = errors.AsType[*smithy.OperationError](request.Err)
	}
	return ok
}

// Classify returns the error of a request that sends no messages as a *relay.Error, or the cause of ctx
// if it has ended.
func Classify(ctx context.Context, err error) error { return classify(ctx, ctx, err, 0) }

// classify classifies the error of a request with this number of messages. ctx is the context of the
// Publish call, attempt that of the request.
func classify(ctx, attempt context.Context, err error, messages int) error {
	if err := relay.Ended(ctx); err != nil {
		return err
	}
	rule := publish.Rule{Class: relay.Outage, Reason: "unreachable"}
	if isCredential(err) {
		rule = publish.Rule{Class: relay.Outage, Reason: "credential"}
	} else if apiErr, ok := errors.AsType[smithy.APIError](err); ok {
		rule = ruleFor(apiErr.ErrorCode(), apiErr.ErrorFault() == smithy.FaultClient)
		if rule.Class == relay.Refused && messages > 1 {
			rule.Class, rule.Ambiguous = relay.Outage, true // any of the messages may be the cause; the relay retries each key alone
		}
	} else if attempt.Err() != nil {
		rule = publish.Rule{Class: relay.Outage, Reason: "send_timeout"}
	}
	return rule.Wrap(err)
}

// entryError returns the error of one message in a response.
func entryError(f types.BatchResultErrorEntry) error {
	return fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
}

// indexOf returns the index of the message with this id in a request of n messages.
func indexOf(id *string, n int) (int, bool) {
	i, err := strconv.Atoi(aws.ToString(id))
	return i, err == nil && i >= 0 && i < n
}
