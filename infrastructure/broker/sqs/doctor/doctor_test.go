package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

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
	for _, c := range []struct {
		queue  string
		resend time.Duration
		want   []string // status and part of the advice of each finding
	}{
		{ordered + "x.fifo", time.Minute, []string{"failed create the FIFO queue"}},
		{plain, time.Minute, []string{"failed create the queue as a FIFO queue"}},
		{ordered, time.Minute, []string{"ok ", "ok ", "warning set a redrive policy"}},
		{ordered, 6 * time.Minute, []string{"ok ", "warning lower FEEDBOX_LEASE_EXPIRY", "warning set a redrive policy"}},
	} {
		var found []operator.Finding
		doctor.New(config.SQS{QueueURL: config.Address(c.queue)}, client).Examine(func(e operator.Examination) bool {
			found = append(found, e(ctx)...)
			return true
		}, "", c.resend)
		if len(found) != len(c.want) {
			t.Errorf("%s: %+v", c.queue, found)
			continue
		}
		for i, f := range found {
			status, next, _ := strings.Cut(c.want[i], " ")
			if string(f.Status) != status || !strings.Contains(f.Next, next) {
				t.Errorf("%s: %+v, want %s", c.queue, f, c.want[i])
			}
		}
	}
}
