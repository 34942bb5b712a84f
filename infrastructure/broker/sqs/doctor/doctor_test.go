package doctor_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/broker/sqs/doctor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/tests/servers"
)

func TestExamineReportsHowToFixTheQueue(t *testing.T) {
	endpoint := servers.StartSQS(t)
	client := awssqs.New(awssqs.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	create := func(name string, attributes map[string]string) string {
		made, err := client.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		return *made.QueueUrl
	}
	ordered, plain := create("orders.fifo", map[string]string{"FifoQueue": "true"}), create("plain", nil)
	declared, err := sqs.Declare(ctx, client, "declared.fifo")
	if err != nil {
		t.Fatal(err)
	}
	create("earlier-dead-letters.fifo", map[string]string{"FifoQueue": "true"})
	earlier := create("earlier.fifo", map[string]string{"FifoQueue": "true", "RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:earlier-dead-letters.fifo","maxReceiveCount":"100"}`})
	if again, err := sqs.Declare(ctx, client, "earlier.fifo"); err != nil || again != earlier {
		t.Errorf("the queue of an earlier version: %s, %v", again, err)
	}
	for _, c := range []struct {
		queue  string
		resend time.Duration
		want   []string
	}{
		{ordered + "x.fifo", time.Minute, []string{"failed create the FIFO queue"}},
		{plain, time.Minute, []string{"failed create the queue as a FIFO queue"}},
		{ordered, time.Minute, []string{"ok ", "warning DeduplicationScope=messageGroup,FifoThroughputLimit=perMessageGroupId", "warning set a redrive policy", "ok "}},
		{declared, time.Minute, []string{"ok ", "ok "}},
		{earlier, 6 * time.Minute, []string{"ok ", "warning enable the high throughput mode", "warning lower FEEDBOX_LEASE_EXPIRY"}},
	} {
		expect(t, c.queue, examine(ctx, doctor.New(config.SQS{QueueURL: config.Address(c.queue)}, client), c.resend), c.want)
	}

	topics := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	// subscribe creates a topic with a queue that has all it needs, but for these attributes of the subscription.
	subscribe := func(name string, attributes map[string]string) (topicARN, queueURL string) {
		topicARN, urls, err := sqs.DeclareTopic(ctx, topics, client, name+".fifo", name+"-queue.fifo")
		if err != nil {
			t.Fatal(err)
		}
		all, err := sqs.Subscriptions(ctx, topics, topicARN)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		for attribute, value := range attributes {
			if _, err := topics.SetSubscriptionAttributes(ctx, &sns.SetSubscriptionAttributesInput{SubscriptionArn: all[0].SubscriptionArn, AttributeName: &attribute, AttributeValue: &value}); err != nil {
				t.Fatal(err)
			}
		}
		return topicARN, urls[0]
	}
	good, _ := subscribe("good", nil)
	envelope, _ := subscribe("envelope", map[string]string{"RawMessageDelivery": "false"})
	filtered, _ := subscribe("filtered", map[string]string{"FilterPolicy": `{"a": ["b"]}`, "RedrivePolicy": ""})
	deleted, queueURL := subscribe("deleted", nil)
	if _, err := client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: &queueURL}); err != nil {
		t.Fatal(err)
	}
	forbidden, queueURL := subscribe("forbidden", nil)
	if _, err := client.SetQueueAttributes(ctx, &awssqs.SetQueueAttributesInput{QueueUrl: &queueURL, Attributes: map[string]string{"Policy": `{"Statement": []}`, "MaximumMessageSize": "65536"}}); err != nil {
		t.Fatal(err)
	}
	alone, err := topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String("alone.fifo"), Attributes: map[string]string{"FifoTopic": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	standard, err := topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String("standard")})
	if err != nil {
		t.Fatal(err)
	}
	for topicARN, want := range map[string][]string{
		good:               {"ok ", "ok ", "ok "},
		good + "x.fifo":    {"failed create the FIFO topic", "unknown correct topic " + good + "x.fifo first"},
		envelope:           {"ok ", "ok ", "ok ", "failed set RawMessageDelivery"},
		filtered:           {"ok ", "ok ", "ok ", "warning remove the filter", "warning set RedrivePolicy of the subscription"},
		deleted:            {"ok ", "ok ", "failed feedbox replay --from TIME"},
		forbidden:          {"ok ", "ok ", "ok ", "failed allow sqs:SendMessage to sns.amazonaws.com", "warning raise MaximumMessageSize"},
		*alone.TopicArn:    {"ok ", "warning FifoThroughputScope", "ok ", "failed subscribe a FIFO queue"},
		*standard.TopicArn: {"failed create the topic as a FIFO topic", "unknown correct topic " + *standard.TopicArn + " first"},
	} {
		expect(t, topicARN, examine(ctx, doctor.NewTopic(config.SNS{TopicARN: topicARN}, topics, client), time.Minute), want)
	}
	names, err := doctor.NewTopic(config.SNS{TopicARN: good}, topics, client).Consumers(ctx, "")
	if err != nil || !slices.Equal(names, []string{"good-queue.fifo"}) {
		t.Errorf("consumers %q, %v", names, err)
	}
}

// SNS sends nothing to a queue of another account before its owner has confirmed the subscription, whose ARN is no ARN
// until then. The relay cannot notice it.
func TestExamineReportsAnUnconfirmedSubscription(t *testing.T) {
	const topicARN = "arn:aws:sns:eu-west-1:111111111111:orders.fifo"
	topic := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.FormValue("Action") {
		case "GetTopicAttributes":
			_, _ = io.WriteString(w, `<GetTopicAttributesResponse><GetTopicAttributesResult><Attributes><entry><key>FifoTopic</key><value>true</value></entry>`+
				`<entry><key>FifoThroughputScope</key><value>MessageGroup</value></entry></Attributes></GetTopicAttributesResult></GetTopicAttributesResponse>`)
		case "ListSubscriptionsByTopic":
			_, _ = io.WriteString(w, `<ListSubscriptionsByTopicResponse><ListSubscriptionsByTopicResult><Subscriptions><member><SubscriptionArn>PendingConfirmation</SubscriptionArn>`+
				`<Protocol>sqs</Protocol><Endpoint>arn:aws:sqs:eu-west-1:222222222222:orders-queue.fifo</Endpoint></member></Subscriptions></ListSubscriptionsByTopicResult></ListSubscriptionsByTopicResponse>`)
		default: // the queue belongs to another account
			w.Header().Set("X-Amzn-Query-Error", "AccessDenied;Sender")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#AccessDenied","message":"no"}`)
		}
	}))
	defer topic.Close()
	identity := credentials.NewStaticCredentialsProvider("a", "b", "")
	topics := sns.New(sns.Options{BaseEndpoint: &topic.URL, Region: "eu-west-1", Credentials: identity})
	queues := awssqs.New(awssqs.Options{BaseEndpoint: &topic.URL, Region: "eu-west-1", Credentials: identity})
	found := examine(t.Context(), doctor.NewTopic(config.SNS{TopicARN: topicARN}, topics, queues), time.Minute)
	expect(t, "unconfirmed", found, []string{"ok ", "ok ", "failed confirm the subscription"})
}

func examine(ctx context.Context, d *doctor.Doctor, resend time.Duration) (found []operator.Finding) {
	d.Examine(func(e operator.Examination) bool {
		part := e(ctx)
		found = append(found, part...)
		return !slices.ContainsFunc(part, func(f operator.Finding) bool { return f.Status == operator.FindingFailed })
	}, "", resend)
	return found
}

// expect compares the status and a part of the advice of each finding.
func expect(t *testing.T, what string, found []operator.Finding, want []string) {
	t.Helper()
	if len(found) != len(want) {
		t.Errorf("%s: %+v, want %q", what, found, want)
		return
	}
	for i, f := range found {
		if status, next, _ := strings.Cut(want[i], " "); string(f.Status) != status || !strings.Contains(f.Next, next) {
			t.Errorf("%s: %+v, want %s", what, f, want[i])
		}
	}
}
